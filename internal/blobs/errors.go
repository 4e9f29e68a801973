package blobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
)

// ErrNotFound says that the store is there and has no such content.
var ErrNotFound = errors.New("the content is not in the blob store")

// ErrInvalid says that the caller asked for what can never be: the message around it says what.
var ErrInvalid = errors.New("invalid request to the blob store")

// IsNotFound says whether an error means that the store is there and has no such content. Whatever else fails, and is not
// ErrInvalid, means that the store is unavailable: the same call may succeed later.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// UnavailableError says that the store did not do what it was asked. Its text is fit for clients: it has neither addresses
// nor paths of the host. Unwrap gives the cause, for the log.
type UnavailableError struct {
	operation string
	cause     error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return "the blob store is unavailable (" + e.operation + "): try again later"
}

// Unwrap gives what went wrong.
func (e *UnavailableError) Unwrap() error { return e.cause }

// Detail gives the whole story of an error, for the log of the operator. It may name hosts and paths.
func Detail(err error) string {
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		return fmt.Sprintf("%v: %v", err, unavailable.cause)
	}
	return err.Error()
}

// failed turns what the bucket answered into what callers know.
func (s *Store) failed(operation string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrInvalid):
		return err
	case missing(err):
		if ready := s.ready(); ready != nil {
			return &UnavailableError{operation: operation, cause: ready}
		}
		return ErrNotFound
	default:
		if _, ok := errors.AsType[*UnavailableError](err); ok {
			return err
		}
		return &UnavailableError{operation: operation, cause: err}
	}
}

// missing says whether an error of the bucket means that an object is not there, rather than the bucket.
func missing(err error) bool {
	if gcerrors.Code(err) != gcerrors.NotFound || strings.Contains(err.Error(), "ContainerNotFound") {
		return false
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return !ok || api.ErrorCode() != "NoSuchBucket"
}

// invalid makes an error of what the caller has to change.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
