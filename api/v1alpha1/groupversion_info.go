package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "agentrooms.dev", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that the generated apply configurations know it by.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add the kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Room{}, &RoomList{},
		&Agent{}, &AgentList{},
		&Task{}, &TaskList{},
		&Consent{}, &ConsentList{},
		&MessageBatch{}, &MessageBatchList{},
		&Inbox{}, &InboxList{},
		&File{}, &FileList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
