package acts

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/internal/problem"
)

var (
	// denied finds what an admission policy has to say.
	denied = regexp.MustCompile(`(?s)ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: (.*)$`)
	// cannot finds what a role does not allow.
	cannot = regexp.MustCompile(`cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?(?: in the namespace "([^"]+)"| at the cluster scope)?`)
)

// Explain turns an error of the API server into a problem that says what to do. What is a problem already stays as it is.
// doing says what was tried: "reading room launch".
func Explain(err error, doing string) error {
	if err == nil {
		return nil
	}
	if p, ok := problem.As(err); ok {
		return p
	}
	p := explained(err)
	if p == nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	p.Message = doing + ": " + p.Message
	return p
}

// explained gives the problem that an answer comes to, nil when the answer speaks for itself.
func explained(err error) *problem.Problem {
	switch {
	case apierrors.IsUnauthorized(err):
		return problem.New(problem.IdentityRequired, "the API server does not know you: sign in again")
	case apierrors.IsForbidden(err):
		return forbidden(err.Error())
	case apierrors.IsNotFound(err) && unknownKind(err), meta.IsNoMatchError(err):
		return problem.New(problem.NotFound, "the cluster does not know the kinds of Agent Rooms: install it, or use another context")
	case apierrors.IsNotFound(err):
		return problem.New(problem.NotFound, "it does not exist")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return invalid(err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return problem.New(problem.Conflict, "somebody else was faster, time after time: look at it again")
	case apierrors.IsRequestEntityTooLargeError(err):
		return problem.New(problem.TooLarge, "it is too large for the API server: make it shorter")
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return problem.New(problem.Unavailable, "the API server is busy: try again shortly")
	case errors.Is(err, context.Canceled):
		return nil
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !isStatus(err):
		return problem.New(problem.Unavailable, "the API server cannot be reached: %v", err)
	default:
		return nil
	}
}

// unknownKind says whether the path itself was not found, and not the object.
func unknownKind(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource")
}

func isStatus(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

func forbidden(text string) *problem.Problem {
	if m := denied.FindStringSubmatch(text); m != nil {
		return problem.New(problem.Forbidden, "%s", m[1])
	}
	m := cannot.FindStringSubmatch(text)
	if m == nil {
		return problem.New(problem.Forbidden, "%s", text)
	}
	where := "in the whole cluster"
	if m[3] != "" {
		where = "in namespace " + m[3]
	}
	return problem.New(problem.Forbidden, "you may not %s %s %s: ask an admin there for a role that lets you", m[1], m[2], where).
		WithHint("%s", roleFor(m[1], m[2]))
}

// roleFor names the role that would do.
func roleFor(verb, resource string) string {
	reads := verb == "get" || verb == "list" || verb == "watch"
	switch {
	case resource == "messagebatches" && reads:
		return "the ClusterRole agentrooms-message-viewer, by a RoleBinding, lets you read what is said"
	case resource == "messagebatches":
		return "the ClusterRole agentrooms-message-sender, by a RoleBinding, lets you read and speak"
	case reads:
		return "the ClusterRole view, by a RoleBinding, lets you look on"
	default:
		return "the ClusterRole edit, by a RoleBinding, lets you change rooms and tasks"
	}
}

// invalid repeats what the API server says about each field.
func invalid(err error) *problem.Problem {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return problem.New(problem.Validation, "%v", err)
	}
	var lines, fields []string
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, strings.TrimSpace(cause.Field+" "+cause.Message))
		if cause.Field != "" {
			fields = append(fields, cause.Field)
		}
	}
	p := problem.New(problem.Validation, "%s", strings.Join(lines, "; "))
	p.Fields = fields
	return p
}
