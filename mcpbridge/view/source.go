package view

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Source feeds a View from watches: one a kind, and one for each of the two sorts of Lease.
type Source struct {
	view  *View
	feeds []*feed
}

// retry is how a watch that broke is begun anew. An informer would wait for up to a minute when the API server went away
// several times, and a replica that does not see what others write is of little use: here it is seconds.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 1500 * time.Millisecond}

// kinds that are watched, each with its list.
func kinds() map[client.Object]client.ObjectList {
	return map[client.Object]client.ObjectList{
		&v1alpha1.Agent{}: &v1alpha1.AgentList{}, &v1alpha1.Room{}: &v1alpha1.RoomList{},
		&v1alpha1.Consent{}: &v1alpha1.ConsentList{}, &v1alpha1.Inbox{}: &v1alpha1.InboxList{},
		&v1alpha1.Task{}: &v1alpha1.TaskList{}, &v1alpha1.MessageBatch{}: &v1alpha1.MessageBatchList{},
		&v1alpha1.File{}: &v1alpha1.FileList{},
	}
}

// NewSource makes a Source. Nothing is watched before Start.
func NewSource(view *View, config *rest.Config, scheme *runtime.Scheme) (*Source, error) {
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	// Custom resources come as JSON only, Leases are cheaper as protobuf.
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clientset, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("making the client for leases: %w", err)
	}
	s := &Source{view: view}
	for kind, list := range kinds() {
		s.feeds = append(s.feeds, newFeed(view, kind, customResources(api, list)))
	}
	for _, label := range []string{v1alpha1.TaskLabel, v1alpha1.InstanceLabel} {
		s.feeds = append(s.feeds, newFeed(view, &coordinationv1.Lease{}, leasesWith(clientset, label)))
	}
	view.behind = s.behind
	return s, nil
}

func customResources(api client.WithWatch, empty client.ObjectList) *toolscache.ListWatch {
	list := func() client.ObjectList { return empty.DeepCopyObject().(client.ObjectList) } //nolint:forcetypeassert // a copy
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			found := list()
			return found, api.List(ctx, found, &client.ListOptions{Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, list(), &client.ListOptions{Raw: &o})
		},
	}
}

func leasesWith(clientset kubernetes.Interface, label string) *toolscache.ListWatch {
	api := clientset.CoordinationV1().Leases(metav1.NamespaceAll)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = label
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = label
			return api.Watch(ctx, o)
		},
	}
}

// Start watches until the context ends. It returns when everything that exists has reached the View, however long the API
// server is away, or when the context ends.
func (s *Source) Start(ctx context.Context) error {
	for _, f := range s.feeds {
		go f.run(ctx)
	}
	for _, f := range s.feeds {
		select {
		case <-f.filled:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the view of the cluster: %w", ctx.Err())
		}
	}
	return nil
}

// behind says whether a watch is broken, so that the View may lack what others wrote.
func (s *Source) behind() bool {
	for _, f := range s.feeds {
		if !f.live.Load() {
			return true
		}
	}
	return false
}

// RecentID is how young the id of something unknown must be for a tool to wait for it: an object that another replica made
// a moment ago may be on its way. Older ones that are unknown do not exist.
const RecentID = 10 * time.Second
