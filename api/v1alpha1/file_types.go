package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a File that its writers must keep. The schema holds them too.
const (
	// MaxFileVersions is how many versions a File may hold.
	MaxFileVersions = 128
	// MaxFileUploads is how many uploads of a File may be under way, or lie in quarantine.
	MaxFileUploads = 16
	// MaxFilePath is how many characters a path may have.
	MaxFilePath = 512
)

// FileContent says which bytes a version of a File has.
type FileContent struct {
	// sha256 of the bytes, as 64 hexadecimal digits.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// size in bytes.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5497558138880
	Size int64 `json:"size"`

	// contentType of the bytes, as their writer named it.
	// +required
	// +kubebuilder:validation:Pattern=`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	ContentType string `json:"contentType"`

	// by whom the content came.
	// +required
	By TaskCreator `json:"by"`

	// at what time it came, by the clock of the replica that took it.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.MicroTime `json:"at"`

	// key is the digest of writer and idempotency key.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{43}$`
	// +kubebuilder:validation:MaxLength=43
	Key string `json:"key,omitempty"`

	// payload is the digest of what was sent under the key.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{43}$`
	// +kubebuilder:validation:MaxLength=43
	Payload string `json:"payload,omitempty"`
}

// FileVersion is one content of a File.
type FileVersion struct {
	FileContent `json:",inline"`

	// version number, from 1 on. Later ones are larger; a number is never used twice.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999999999
	Version int64 `json:"version"`

	// uploadID of the upload that brought the content, if it came as one.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	// +kubebuilder:validation:MaxLength=26
	UploadID string `json:"uploadID,omitempty"`
}

// UploadState says how far an upload is.
// +kubebuilder:validation:Enum=Pending;Quarantined
type UploadState string

const (
	// UploadPending waits for its bytes, and for somebody to say that they are there.
	UploadPending UploadState = "Pending"
	// UploadQuarantined has bytes that are not what was announced. Nobody can read them.
	UploadQuarantined UploadState = "Quarantined"
)

// FileUpload is content that is announced and not part of the File yet.
type FileUpload struct {
	FileContent `json:",inline"`

	// id of the upload: a ULID.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	// +kubebuilder:validation:MinLength=26
	// +kubebuilder:validation:MaxLength=26
	ID string `json:"id"`

	// state of the upload.
	// +required
	State UploadState `json:"state"`

	// expiresAt is when the upload is collected.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	ExpiresAt metav1.MicroTime `json:"expiresAt"`

	// reason for the quarantine.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// FileDeletion says that a File was deleted. Until the versions are collected, an admin brings them back by removing it.
type FileDeletion struct {
	// throughVersion is the last version that was deleted. What is written to the path later is not.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999999999
	ThroughVersion int64 `json:"throughVersion"`

	// by whom the File was deleted.
	// +required
	By TaskCreator `json:"by"`

	// at what time.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.MicroTime `json:"at"`
}

// FileSpec is what is known of a File. The bridge writes it: content lies in the blob store.
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path && self.roomRef == oldSelf.roomRef",message="a File may not move"
// +kubebuilder:validation:XValidation:rule="!has(self.versions) || self.versions.all(v, self.versions[0].version >= v.version)",message="the newest version must come first"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.versions) || size(oldSelf.versions) == 0 || (has(self.versions) && size(self.versions) > 0 && self.versions[0].version >= oldSelf.versions[0].version) || (has(oldSelf.deletion) && oldSelf.deletion.throughVersion >= oldSelf.versions[0].version)",message="the latest version may not go away unless it was deleted"
type FileSpec struct {
	// roomRef names the Room that the File belongs to.
	// +required
	RoomRef RoomReference `json:"roomRef"`

	// path by which the room knows the File: segments with slashes between them, in Unicode's composed form (NFC).
	// +required
	// +kubebuilder:validation:Pattern=`^[^/\\\x00-\x1f\x7f]+(/[^/\\\x00-\x1f\x7f]+)*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// versions of the content, the newest first.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=128
	Versions []FileVersion `json:"versions,omitempty"`

	// uploads that are under way or in quarantine.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=16
	Uploads []FileUpload `json:"uploads,omitempty"`

	// deletion of the File, if it was deleted.
	// +optional
	Deletion *FileDeletion `json:"deletion,omitempty"`
}

// File is a file of a Room: a path, and the versions of its content that the room keeps. The bytes lie in the blob store.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rfile,categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.spec.versions[0].version`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.spec.versions[0].size`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.versions[0].contentType`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.spec.versions[0].at`
// +kubebuilder:printcolumn:name="Deleted",type=date,JSONPath=`.spec.deletion.at`
// +kubebuilder:printcolumn:name="SHA256",type=string,JSONPath=`.spec.versions[0].sha256`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.roomRef.name + '-f')",message="a File's name must begin with its room's name and -f"
type File struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is known of the File.
	// +required
	Spec FileSpec `json:"spec"`
}

// FileList is a list of Files.
// +kubebuilder:object:root=true
type FileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []File `json:"items"`
}
