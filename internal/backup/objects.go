package backup

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// writesAtOnce is how many objects are restored side by side.
const writesAtOnce = 8

// restoreLines restores the objects of an entry.
func restoreLines[T any](ctx context.Context, name string, size int64, r io.Reader, one func(context.Context, *T) error) error {
	items, err := decodeLines[T](name, size, r)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for i := range items {
		group.Go(func() error { return one(ctx, &items[i]) })
	}
	return group.Wait() //nolint:wrapcheck // it says what it was about
}

// agent makes an Agent unless the cluster has it: then it stays as it is.
func (im *restore) agent(ctx context.Context, a *v1alpha1.Agent) error {
	a.Namespace = placeOf(a, im.Namespace).Namespace
	return im.create(ctx, a)
}

func (im *restore) consent(ctx context.Context, c *v1alpha1.Consent) error {
	c.Namespace = im.Namespace
	return im.create(ctx, c)
}

func (im *restore) inbox(ctx context.Context, wanted *v1alpha1.Inbox) error {
	box := &v1alpha1.Inbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: im.Namespace, Name: ids.InboxName(im.room.Name, im.room.UID, wanted.Spec.Plate),
			Labels:          map[string]string{v1alpha1.RoomLabel: im.room.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(im.room, v1alpha1.GroupVersion.WithKind("Room"))},
		},
		Spec: wanted.Spec,
	}
	if err := im.create(ctx, box); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(box.Status, wanted.Status) {
		return nil
	}
	box.Status = wanted.Status
	if err := im.Client.Status().Update(ctx, box); err != nil {
		return fmt.Errorf("writing inbox %s: %w", box.Name, err)
	}
	return nil
}

// moved puts an archived task into the blob store, where it was.
func (im *restore) moved(ctx context.Context, task *v1alpha1.Task) error {
	task.Namespace = im.Namespace
	owned(task, im.room)
	if err := archive.WriteTask(ctx, im.Blobs.Bucket(), im.room.UID, ids.ID(task), task); err != nil {
		return fmt.Errorf("restoring task %s: %w", task.Name, err)
	}
	return nil
}

// task makes a Task and brings it to its state. The manager may say something of it meanwhile, but leaves its state alone.
func (im *restore) task(ctx context.Context, wanted *v1alpha1.Task) error {
	wanted.Namespace = im.Namespace
	task := wanted.DeepCopy()
	task.Spec.Archived = false // only what has ended may be, and it begins as Todo
	if err := im.create(ctx, task); err != nil {
		return err
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := im.Client.Get(ctx, client.ObjectKeyFromObject(wanted), task); err != nil {
			return err //nolint:wrapcheck // retried by what it is
		}
		return im.move(ctx, task, &wanted.Status)
	})
	if err == nil && wanted.Spec.Archived && !task.Spec.Archived {
		task.Spec.Archived = true
		err = im.Client.Update(ctx, task)
	}
	if err != nil {
		return fmt.Errorf("restoring task %s: %w", wanted.Name, err)
	}
	return nil
}

// move brings a task to a status.
func (im *restore) move(ctx context.Context, task *v1alpha1.Task, to *v1alpha1.TaskStatus) error {
	if equality.Semantic.DeepEqual(task.Status, final(&task.Status, to)) {
		return nil
	}
	list, err := steps(&task.Status, to)
	if err != nil {
		return err
	}
	for i := range list {
		task.Status = list[i]
		if err := im.Client.Status().Update(ctx, task); err != nil {
			return err //nolint:wrapcheck // retried by what it is
		}
	}
	return nil
}

func (im *restore) file(ctx context.Context, f *v1alpha1.File) error {
	f.Namespace, f.Name = im.Namespace, ids.FileName(im.room.Name, im.room.UID, files.Look(f.Spec.Path))
	return im.create(ctx, f)
}

// content puts the content of files into the blob store. It is there once however often it is put.
func (im *restore) content(ctx context.Context, hash string, size int64, r io.Reader) error {
	verdict, err := im.Blobs.PutStream(ctx, im.room.UID, r, blobs.Expect{SHA256: hash, Size: size})
	if err == nil && !verdict.OK {
		err = fmt.Errorf("%w: %s", ErrDamaged, verdict.Reason)
	}
	if err != nil {
		return fmt.Errorf("storing the content %s: %w", hash, err)
	}
	return nil
}
