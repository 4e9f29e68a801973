package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"gocloud.dev/blob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/blobs"
)

// fileOf gives 1 KB of text that no other call has.
func fileOf(round, clients, n int) string {
	head := fmt.Sprintf("Notes %d of round %d with %d clients. ", n, round, clients)
	return head + strings.Repeat("x", 1024-len(head))
}

// bucket opens the store that the plane keeps contents in.
func (p *plane) bucket(ctx context.Context) (*blob.Bucket, error) {
	url := p.blobURL
	if url == "" {
		url = "file://" + p.dir + "/blobs"
	}
	store, err := blobs.Open(ctx, blobs.Options{URL: url})
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return store.Bucket().Bucket, nil
}

// bareWrite puts content into the store and makes a File, without looking at anything before.
func (w *world) bareWrite(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, round int) (call, int, error) {
		bucket, err := w.plane.bucket(ctx)
		return func(_, n int) error {
			content := fileOf(round, clients, n)
			sum := sha256.Sum256([]byte(content))
			if err := bucket.WriteAll(ctx, "bench/"+hex.EncodeToString(sum[:]), []byte(content), nil); err != nil {
				return fmt.Errorf("writing content: %w", err)
			}
			return w.createFile(ctx, fmt.Sprintf("r%dc%dn%d", round, clients, n), hex.EncodeToString(sum[:]))
		}, 0, err
	}
}

func (w *world) createFile(ctx context.Context, name, sum string) error {
	file := &v1alpha1.File{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare-f" + name},
		Spec: v1alpha1.FileSpec{
			RoomRef: v1alpha1.RoomReference{Name: "bare"}, Path: name,
			Versions: []v1alpha1.FileVersion{{Version: 1, FileContent: v1alpha1.FileContent{
				SHA256: sum, Size: 1024, ContentType: "text/plain; charset=utf-8", At: metav1.NowMicro(),
				By: v1alpha1.TaskCreator{Plate: "BRNL-AGT-00000000000000000000000000"},
			}}},
		},
	}
	created := &v1alpha1.File{}
	if err := w.rooms.Post().Namespace(namespace).Resource("files").Body(file).Do(ctx).Into(created); err != nil {
		return fmt.Errorf("creating a file: %w", err)
	}
	return nil
}

// write writes new files into the rooms for spreading, which have room for more than one.
func (w *world) write(clients int) func(context.Context, int) (call, int, error) {
	return func(_ context.Context, round int) (call, int, error) {
		return func(i, n int) error {
			body := toolCall("write_file", map[string]any{
				"room": w.spread[n%spread], "path": fmt.Sprintf("notes/r%d/c%d/%d.txt", round, clients, n),
				"content": fileOf(round, clients, n), "session_id": session(i),
			})
			return w.replicas[0].must(context.Background(), body, `"version":1`)
		}, 0, nil
	}
}

// notes is the file that is read.
const notes = "notes.txt"

// notesID makes the file that is read and gives its id.
func (w *world) notesID(ctx context.Context) (string, error) {
	var written struct {
		FileID string `json:"file_id"`
	}
	err := w.replicas[0].get(ctx, "write_file", map[string]any{
		"room": w.lobby, "path": notes, "content": fileOf(0, 0, 0), "session_id": session(0),
	}, &written)
	return written.FileID, err
}

// bareRead fetches content by a signed URL, as whoever has one does.
func (w *world) bareRead(int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		id, err := w.notesID(ctx)
		if err != nil {
			return nil, 0, err
		}
		var fetched struct {
			URL string `json:"download_url"`
		}
		err = w.replicas[0].get(ctx, "fetch_file", map[string]any{"file_id": id, "session_id": session(0)}, &fetched)
		client := &http.Client{Transport: transport}
		return func(int, int) error { return fetch(ctx, client, fetched.URL) }, 0, err
	}
}

func fetch(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("fetching: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil || len(content) != 1024 || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching gives %s and %d bytes: %w", answer.Status, len(content), err)
	}
	return nil
}

func (w *world) read(clients int) func(context.Context, int) (call, int, error) {
	reading := w.reading("read_file", map[string]any{"room": w.lobby, "path": notes}, `"size":1024`)(clients)
	return func(ctx context.Context, round int) (call, int, error) {
		if _, err := w.notesID(ctx); err != nil {
			return nil, 0, err
		}
		return reading(ctx, round)
	}
}
