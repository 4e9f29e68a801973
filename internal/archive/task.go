package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// ErrNoTask says that the archive has no such task.
var ErrNoTask = errors.New("the archive has no such task")

// maxTask bounds what a task may have when it is not compressed: what the API server takes is less.
const maxTask = 4 << 20

// TaskPrefix gives what the names of all archived tasks of a room begin with in the blob store.
func TaskPrefix(room types.UID) string { return fmt.Sprintf("rooms/%s/tasks/", room) }

// TaskKey gives the name in the blob store of an archived task, by the id that tools call it by.
func TaskKey(room types.UID, id string) string { return TaskPrefix(room) + id + taskSuffix }

const taskSuffix = ".json.gz"

// WriteTask puts an archived task into the blob store, and reads it back and verifies it: what is left when it returns is
// the task as it is given or one that is newer. What stands there older, from a try that did not end, or damaged is replaced.
func WriteTask(ctx context.Context, bucket Bucket, room types.UID, id string, task *v1alpha1.Task) error {
	packed, err := encodeTask(task)
	if err != nil {
		return err
	}
	key := TaskKey(room, id)
	if there, err := ReadTask(ctx, bucket, room, id); err == nil {
		if order, err := resourceversion.CompareResourceVersion(there.ResourceVersion, task.ResourceVersion); err == nil && order >= 0 {
			return nil
		}
	} else if !errors.Is(err, ErrNoTask) && !errors.Is(err, ErrCorrupt) {
		return err
	}
	if err := put(ctx, bucket, key, packed, false); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	there, err := read(ctx, bucket, key)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, packed) {
		return fmt.Errorf("reading %s back: %w", key, ErrCorrupt)
	}
	return nil
}

// ReadTask gives an archived task. The error is ErrNoTask when there is none and ErrCorrupt when it cannot be read.
func ReadTask(ctx context.Context, bucket Bucket, room types.UID, id string) (*v1alpha1.Task, error) {
	key := TaskKey(room, id)
	packed, err := read(ctx, bucket, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("reading %s: %w", key, ErrNoTask)
	}
	if err != nil {
		return nil, err
	}
	task, err := decodeTask(packed)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w: %w", key, ErrCorrupt, err)
	}
	return task, nil
}

// EachTask visits the archived tasks of a room in the order of their ids.
func EachTask(ctx context.Context, bucket Bucket, room types.UID, visit func(id string, task *v1alpha1.Task) error) error {
	found := bucket.List(&blob.ListOptions{Prefix: TaskPrefix(room)})
	for {
		o, err := found.Next(ctx)
		if errors.Is(err, io.EOF) {
			return ready(bucket)
		}
		if err != nil {
			return fmt.Errorf("listing the archived tasks: %w", err)
		}
		id, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, TaskPrefix(room)), taskSuffix)
		if !ok {
			continue // nothing of ours
		}
		task, err := ReadTask(ctx, bucket, room, id)
		if err != nil {
			return err
		}
		if err := visit(id, task); err != nil {
			return err
		}
	}
}

func encodeTask(task *v1alpha1.Task) ([]byte, error) {
	clean := task.DeepCopy()
	clean.ManagedFields = nil
	clean.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Task"))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(clean), z.Close()); err != nil {
		return nil, fmt.Errorf("encoding task %s: %w", task.Name, err)
	}
	return packed.Bytes(), nil
}

func decodeTask(packed []byte) (*v1alpha1.Task, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxTask))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	task := &v1alpha1.Task{}
	if err := json.Unmarshal(plain, task); err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	return task, nil
}
