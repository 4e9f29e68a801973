package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestAnInformerIsUpToDateSoonAfterTheAPIServerIsBack fails as an API server does that is killed and starts: nobody listens,
// then its database is not there, then it knows no roles.
func TestAnInformerIsUpToDateSoonAfterTheAPIServerIsBack(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	trouble := []error{
		errors.New("connection refused"), errors.New("connection reset by peer"), apierrors.NewInternalError(errors.New("etcd")),
		apierrors.NewServiceUnavailable("starting"), apierrors.NewForbidden(resource, "", errors.New("no role")),
		apierrors.NewUnauthorized("who?"),
	}
	lists := 0
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if lists++; lists <= len(trouble) {
				return nil, trouble[lists-1]
			}
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"},
			}}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			return watch.NewFake(), nil
		},
	}
	informer := newInformer(source, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
	go informer.RunWithContext(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatalf("after %d lists the informer has nothing", lists)
	}
	if _, there, err := informer.GetStore().GetByKey("ns/there"); !there || err != nil {
		t.Error("the informer does not hold what is there")
	}
}

func TestWhatTheAPIServerMeansIsTheReflectorsToJudge(t *testing.T) {
	for _, err := range []error{
		apierrors.NewResourceExpired("too old"), apierrors.NewBadRequest("no"),
		apierrors.NewInvalid(schema.GroupKind{}, "", nil), apierrors.NewTooManyRequests("later", 1),
	} {
		calls := 0
		_, got := insist(t.Context(), func() (int, error) {
			calls++
			return 0, err
		})
		if !errors.Is(got, err) || calls != 1 {
			t.Errorf("%v was tried %d times and gives %v", err, calls, got)
		}
	}
}
