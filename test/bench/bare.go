package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// roomsClient makes a client as client-gen generates them.
func roomsClient(config *rest.Config, scheme *apiruntime.Scheme) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1alpha1.GroupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	rc, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making the client for rooms: %w", err)
	}
	return rc, nil
}

// leasesClient makes a client that speaks protobuf.
func leasesClient(config *rest.Config) (kubernetes.Interface, error) {
	c := rest.CopyConfig(config)
	c.ContentType = apiruntime.ContentTypeProtobuf
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making the client for leases: %w", err)
	}
	return k, nil
}

// bareTasks makes a task for each client to write to. Nobody is assigned and nobody claims them, so that the controllers
// look at each write, as they do at a claim, and write nothing themselves: the bare side is as fast as it can be.
func (w *world) bareTasks(ctx context.Context, clients int) ([]*v1alpha1.Task, error) {
	list := make([]*v1alpha1.Task, clients)
	for i := range list {
		list[i] = &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "bare-"},
			Spec: v1alpha1.TaskSpec{
				RoomRef: v1alpha1.RoomReference{Name: "bare"}, Title: fmt.Sprintf("Bare %d", i),
				DefinitionOfDone: "file:result.md exists and is reviewed",
			},
		}
		if err := w.admin.Create(ctx, list[i]); err != nil {
			return nil, fmt.Errorf("creating a task: %w", err)
		}
	}
	if err := w.settled(ctx, "bare"); err != nil {
		return nil, err
	}
	for i := range list {
		task, err := w.readTask(ctx, list[i].Name)
		if err != nil {
			return nil, err
		}
		list[i] = task
	}
	return list, nil
}

func (w *world) readTask(ctx context.Context, name string) (*v1alpha1.Task, error) {
	task := &v1alpha1.Task{}
	if err := w.rooms.Get().Namespace(namespace).Resource("tasks").Name(name).Do(ctx).Into(task); err != nil {
		return nil, fmt.Errorf("reading a task: %w", err)
	}
	return task, nil
}

// cas writes a task's status with the resourceVersion last seen, with as much in it as a claim has.
func (w *world) cas(ctx context.Context, task *v1alpha1.Task, n int) (*v1alpha1.Task, error) {
	task.Status.History = []v1alpha1.TaskEvent{
		{At: metav1.Now(), From: v1alpha1.TaskTodo, To: v1alpha1.TaskDoing, By: "session", Epoch: 1, Note: fmt.Sprint("claimed ", n)},
	}
	written := &v1alpha1.Task{}
	err := w.rooms.Put().Namespace(namespace).Resource("tasks").Name(task.Name).SubResource("status").
		Body(task).Do(ctx).Into(written)
	if err != nil {
		return nil, fmt.Errorf("writing a status: %w", err)
	}
	return written, nil
}

// newLease gives a Lease as it is made for a claim, without the label by which ours are watched.
func newLease(name string) *coordinationv1.Lease {
	now := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("BRNL-AGT-00000000000000000000000000/session"), LeaseDurationSeconds: new(int32(600)),
			LeaseTransitions: new(int32(1)), AcquireTime: &now, RenewTime: &now,
		},
	}
}

func (w *world) createLease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease, err := w.leases.CoordinationV1().Leases(namespace).Create(ctx, newLease(name), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a lease: %w", err)
	}
	return lease, nil
}

func (w *world) renewLease(ctx context.Context, as kubernetes.Interface, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	now := metav1.NewMicroTime(time.Now())
	lease.Spec.RenewTime = &now
	written, err := as.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("updating a lease: %w", err)
	}
	return written, nil
}

// heldLeases gives the Leases of tasks that are claimed.
func (w *world) heldLeases(ctx context.Context) ([]*coordinationv1.Lease, error) {
	found, err := w.leases.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.TaskLabel})
	if err != nil {
		return nil, fmt.Errorf("listing leases: %w", err)
	}
	list := make([]*coordinationv1.Lease, len(found.Items))
	for i := range list {
		list[i] = &found.Items[i]
	}
	return list, nil
}

// createMessage makes a MessageBatch with one message. Each client writes a chain of its own, so that none waits for
// another.
func (w *world) createMessage(ctx context.Context, chain string, number int64) error {
	batch := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("lobby-%s-b%010d", chain, number)},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: "lobby"}, Number: number, FirstSeq: number, Writer: "bench",
			Messages: []v1alpha1.Message{{
				Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: "BRNL-AGT-00000000000000000000000000", Name: worker},
				Body:   messageBody, At: metav1.NowMicro(),
			}},
		},
	}
	created := &v1alpha1.MessageBatch{}
	if err := w.rooms.Post().Namespace(namespace).Resource("messagebatches").Body(batch).Do(ctx).Into(created); err != nil {
		return fmt.Errorf("creating a batch: %w", err)
	}
	return nil
}

// messageBody is what every message says.
const messageBody = "The draft is ready for review. I changed the second section and left two questions in the margin."
