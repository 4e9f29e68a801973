package problem

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryInstallSeconds is when to look again for kinds that somebody has to install.
const retryInstallSeconds = 30

// NotInstalled says whether an answer of the API server means that it does not serve the kind of object at all: its
// CustomResourceDefinition was never applied, was deleted, or is being deleted. That one object does not exist is something else.
func NotInstalled(err error) bool {
	switch {
	case meta.IsNoMatchError(err), apierrors.IsMethodNotSupported(err):
		return true
	case apierrors.IsNotFound(err):
		// Where a path is not served, no API answers but the server itself, in plain text ("404 page not found").
		return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	}
	return false
}

// Missing gives the problem of a call to the API server that failed since something is not there: the kinds, the object, or the
// namespace. It gives nil for every other error.
func Missing(err error) *Problem {
	switch {
	case NotInstalled(err):
		p := New(Unavailable, "the cluster does not have all kinds of Agent Rooms installed").
			WithHint("tell whoever runs Agent Rooms to apply its CustomResourceDefinitions again, and try again then")
		p.RetryAfterSeconds = retryInstallSeconds
		return p
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return New(NotFound, "what this call is about was deleted").
			WithHint("list_rooms and read_board give what there is")
	}
	return nil
}
