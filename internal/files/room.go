package files

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// OfRoom says whether a File belongs to a room, and not to one that had its name before.
func OfRoom(f *v1alpha1.File, room *v1alpha1.Room) bool {
	return f.Namespace == room.Namespace && f.Spec.RoomRef.Name == room.Name &&
		slices.ContainsFunc(f.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == room.UID })
}
