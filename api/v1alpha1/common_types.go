package v1alpha1

// RoomReference names a Room in the same namespace.
type RoomReference struct {
	// name of the Room, in the namespace of the object that refers to it.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}
