package view

import (
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// object is what the view keeps: a pointer to a Kubernetes object.
type object interface {
	comparable
	metav1.Object
}

// maxGone is how many deleted objects are remembered, so that an answer that is still under way does not bring them back.
const maxGone = 4096

// objects keeps the newest state of the objects of one kind, and calls hooks under its lock when something changes.
type objects[T object] struct {
	mu    sync.RWMutex
	byKey map[types.NamespacedName]T
	gone  map[types.UID]bool
	queue []types.UID
	// version counts the changes.
	version atomic.Int64
	// changed is called with the old and the new object, either of which may be the zero value. It must not block.
	changed func(old, next T)
}

func newObjects[T object](changed func(old, next T)) *objects[T] {
	return &objects[T]{byKey: map[types.NamespacedName]T{}, gone: map[types.UID]bool{}, changed: changed}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// newer says whether a replaces b. What cannot be compared replaces.
func newer(a, b metav1.Object) bool {
	if a.GetUID() != b.GetUID() {
		return true
	}
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || c > 0
}

// put takes in an object, unless something newer is known.
func (o *objects[T]) put(next T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone[next.GetUID()] {
		return
	}
	k := keyOf(next)
	old, ok := o.byKey[k]
	if ok && !newer(next, old) {
		return
	}
	o.byKey[k] = next
	o.changed(old, next)
	o.version.Add(1)
}

// remove takes out a deleted object.
func (o *objects[T]) remove(last T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if uid := last.GetUID(); !o.gone[uid] {
		o.gone[uid] = true
		if o.queue = append(o.queue, uid); len(o.queue) > maxGone {
			delete(o.gone, o.queue[0])
			o.queue = o.queue[1:]
		}
	}
	k := keyOf(last)
	old, ok := o.byKey[k]
	if !ok || old.GetUID() != last.GetUID() {
		return
	}
	delete(o.byKey, k)
	var none T
	o.changed(old, none)
	o.version.Add(1)
}

// get finds an object by namespace and name.
func (o *objects[T]) get(namespace, name string) (T, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	v, ok := o.byKey[types.NamespacedName{Namespace: namespace, Name: name}]
	return v, ok
}

// len counts the objects.
func (o *objects[T]) len() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.byKey)
}

// all gives the objects in no order.
func (o *objects[T]) all() []T {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]T, 0, len(o.byKey))
	for _, v := range o.byKey {
		list = append(list, v)
	}
	return list
}
