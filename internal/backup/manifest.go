package backup

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// lastApplied is what kubectl apply leaves on an object. It is about another object than the one that is restored.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// kind gives the TypeMeta of a kind.
func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: name}
}

// metadata gives of an object's metadata what is not the cluster's. That the room owns it is kept without the room's UID. The id is
// given where tools know the object by one.
func metadata(o metav1.Object, room types.UID, id string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels(), Annotations: maps.Clone(o.GetAnnotations())}
	delete(m.Annotations, lastApplied)
	delete(m.Annotations, v1alpha1.IDAnnotation)
	if id != "" {
		metav1.SetMetaDataAnnotation(&m, v1alpha1.IDAnnotation, id)
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.UID == room {
			owner.UID = ""
			m.OwnerReferences = append(m.OwnerReferences, owner)
		}
	}
	return m
}

// owned gives the room its UID as the owner of what is restored.
func owned(o metav1.Object, room *v1alpha1.Room) {
	owners := o.GetOwnerReferences()
	for i := range owners {
		if owners[i].UID == "" {
			owners[i].UID = room.UID
		}
	}
	o.SetOwnerReferences(owners)
}

func ownerOf(room *v1alpha1.Room) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: room.Name, UID: room.UID}}
}

func roomManifest(room *v1alpha1.Room) *v1alpha1.Room {
	return &v1alpha1.Room{TypeMeta: kind("Room"), ObjectMeta: metadata(room, room.UID, ids.ID(room)), Spec: room.Spec}
}

// agentManifest gives an Agent. It has a namespace when that is not the room's own; a subject has none when it is the Agent's own,
// as the Agent may come into another one.
func agentManifest(a *v1alpha1.Agent, room *v1alpha1.Room) *v1alpha1.Agent {
	m := &v1alpha1.Agent{TypeMeta: kind("Agent"), ObjectMeta: metadata(a, room.UID, ids.Plate(a)), Spec: *a.Spec.DeepCopy()}
	if a.Namespace != room.Namespace {
		m.Namespace = a.Namespace
	}
	for i := range m.Spec.Subjects {
		if s := &m.Spec.Subjects[i]; s.Namespace == a.Namespace {
			s.Namespace = ""
		}
	}
	return m
}

func consentManifest(c *v1alpha1.Consent, room *v1alpha1.Room) *v1alpha1.Consent {
	return &v1alpha1.Consent{TypeMeta: kind("Consent"), ObjectMeta: metadata(c, room.UID, ids.ID(c)), Spec: c.Spec}
}

// inboxManifest gives an Inbox without its name, which follows from the room's UID.
func inboxManifest(b *v1alpha1.Inbox) *v1alpha1.Inbox {
	return &v1alpha1.Inbox{TypeMeta: kind("Inbox"), Spec: b.Spec, Status: b.Status}
}

// taskManifest gives a Task with all of its status that the controllers do not find anew. A task whose creator assigned it says
// so: else it would seem assigned by whoever restores it.
func taskManifest(t *v1alpha1.Task, room *v1alpha1.Room) *v1alpha1.Task {
	m := &v1alpha1.Task{
		TypeMeta: kind("Task"), ObjectMeta: metadata(t, room.UID, ids.ID(t)), Spec: *t.Spec.DeepCopy(), Status: *t.Status.DeepCopy(),
	}
	m.Status.ObservedGeneration, m.Status.Conditions = 0, nil
	if m.Spec.Assignee != "" && m.Spec.AssignedBy == nil {
		m.Spec.AssignedBy = m.Spec.Creator.DeepCopy()
	}
	return m
}

// fileManifest gives a File without its name, which follows from the room's UID, and without what goes away by itself: deleted
// versions and uploads. It is nil when nothing is left.
func fileManifest(f *v1alpha1.File, room *v1alpha1.Room, kept []v1alpha1.FileVersion) *v1alpha1.File {
	if len(kept) == 0 {
		return nil
	}
	m := &v1alpha1.File{TypeMeta: kind("File"), ObjectMeta: metadata(f, room.UID, ids.ID(f))}
	m.Name = ""
	m.Spec = v1alpha1.FileSpec{RoomRef: f.Spec.RoomRef, Path: f.Spec.Path, Versions: kept}
	return m
}
