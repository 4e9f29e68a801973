package controllers

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// CacheOptions are what the manager keeps in memory: of the cluster's Leases those of tasks, of messages what tells them
// apart and not what they say, and of nothing who manages which field.
//
// The client does not wait for its own writes to come back (read-your-writes). With a filtered cache that would block every
// read of Leases after a write of one outside the filter; and what keeps a stale view from doing harm is the resourceVersion
// in each write, which holds between processes as well.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}:  {Label: having(v1alpha1.TaskLabel)},
			&v1alpha1.MessageBatch{}: {Transform: stripMessages},
		},
	}
}

// having selects what has a label.
func having(label string) labels.Selector {
	// A constant label is a valid one.
	r, _ := labels.NewRequirement(label, selection.Exists, nil)
	return labels.NewSelector().Add(*r)
}

func stripMessages(o any) (any, error) {
	if batch, ok := o.(*v1alpha1.MessageBatch); ok {
		StripBatch(batch)
	}
	return o, nil
}

// StripBatch drops from a batch what the manager has no use for. How many messages there are, and the keys under which they
// were sent, stay.
func StripBatch(batch *v1alpha1.MessageBatch) {
	batch.ManagedFields = nil
	for i, m := range batch.Spec.Messages {
		batch.Spec.Messages[i] = v1alpha1.Message{Key: m.Key, Payload: m.Payload, At: m.At}
	}
}
