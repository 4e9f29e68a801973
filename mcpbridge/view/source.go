package view

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Source feeds a View from watches: one a kind, and one for each of the two sorts of Lease.
type Source struct {
	view   *View
	cache  cache.Cache
	leases []informers.SharedInformerFactory
	synced []toolscache.InformerSynced
}

// NewSource makes a Source. Nothing is watched before Start.
func NewSource(view *View, config *rest.Config, scheme *runtime.Scheme) (*Source, error) {
	c, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	// Custom resources come as JSON only, Leases are cheaper as protobuf.
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clientset, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("making the client for leases: %w", err)
	}
	s := &Source{view: view, cache: c}
	for _, label := range []string{v1alpha1.TaskLabel, v1alpha1.InstanceLabel} {
		s.leases = append(s.leases, informers.NewSharedInformerFactoryWithOptions(clientset, 0,
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = label }),
			informers.WithTransform(cache.TransformStripManagedFields())))
	}
	return s, nil
}

// Start watches until the context ends. It returns when everything that exists has reached the View.
func (s *Source) Start(ctx context.Context) error {
	go func() { _ = s.cache.Start(ctx) }()
	kinds := []client.Object{
		&v1alpha1.Agent{}, &v1alpha1.Room{}, &v1alpha1.Consent{}, &v1alpha1.Inbox{}, &v1alpha1.Task{}, &v1alpha1.MessageBatch{},
	}
	for _, kind := range kinds {
		informer, err := s.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		if err := s.follow(informer); err != nil {
			return err
		}
	}
	for _, f := range s.leases {
		if err := s.follow(f.Coordination().V1().Leases().Informer()); err != nil {
			return err
		}
		f.Start(ctx.Done())
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), s.synced...) {
		return fmt.Errorf("waiting for the view of the cluster: %w", ctx.Err())
	}
	s.view.Book.Settle()
	return nil
}

// handled is what both libraries' informers can do.
type handled interface {
	AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}

func (s *Source) follow(informer handled) error {
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    s.view.Watched,
		UpdateFunc: func(_, next any) { s.view.Watched(next) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			s.view.Gone(last)
		},
	})
	if err != nil {
		return fmt.Errorf("adding an event handler: %w", err)
	}
	s.synced = append(s.synced, registration.HasSynced)
	return nil
}

// RecentID is how young the id of something unknown must be for a tool to wait for it: an object that another replica made
// a moment ago may be on its way. Older ones that are unknown do not exist.
const RecentID = 10 * time.Second
