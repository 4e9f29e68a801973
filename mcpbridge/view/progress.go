package view

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ProgressTopic is the topic of how far the watches have come.
const ProgressTopic = "progress"

// progress is how far the watch of each kind has come.
type progress struct {
	mu   sync.Mutex
	seen map[string]string
}

// kindOf names the kind of an object: its Go type.
func kindOf(obj any) string { return fmt.Sprintf("%T", obj) }

// Watched takes in what a watch showed, and notes how far it has come.
func (v *View) Watched(obj any) {
	v.Saw(obj)
	if o, ok := obj.(metav1.Object); ok {
		v.cameTo(obj, o.GetResourceVersion())
	}
}

// cameTo notes that the watch of an object's kind has come to a resourceVersion.
func (v *View) cameTo(obj any, resourceVersion string) {
	kind := kindOf(obj)
	v.progress.mu.Lock()
	if c, err := resourceversion.CompareResourceVersion(resourceVersion, v.progress.seen[kind]); err != nil || c > 0 {
		v.progress.seen[kind] = resourceVersion
	}
	v.progress.mu.Unlock()
	v.Hub.publish(ProgressTopic)
}

// Reached says whether the watch of an object's kind has come to a resourceVersion of that kind.
func (v *View) Reached(obj any, resourceVersion string) bool {
	v.progress.mu.Lock()
	defer v.progress.mu.Unlock()
	c, err := resourceversion.CompareResourceVersion(v.progress.seen[kindOf(obj)], resourceVersion)
	return err == nil && c >= 0
}
