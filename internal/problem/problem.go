// Package problem holds the errors that agents get to see: a code of a small family, a message that says what to do next,
// and the facts that help doing it. Rules return them, the bridge turns them into tool results.
package problem

import (
	"errors"
	"fmt"
)

// Code names a kind of problem. The family is the one of the rooms toolset.
type Code string

// The codes, each with the HTTP status that Status gives it.
const (
	Validation          Code = "VALIDATION"
	IdentityRequired    Code = "IDENTITY_REQUIRED"
	ForbiddenScope      Code = "FORBIDDEN_SCOPE"
	NotAMember          Code = "NOT_A_MEMBER"
	Forbidden           Code = "FORBIDDEN"
	NotFound            Code = "NOT_FOUND"
	Conflict            Code = "CONFLICT"
	RoomNotActive       Code = "ROOM_NOT_ACTIVE"
	ConsentRequired     Code = "CONSENT_REQUIRED"
	LeaseLost           Code = "LEASE_LOST"
	IdempotencyConflict Code = "IDEMPOTENCY_CONFLICT"
	UploadNotComplete   Code = "UPLOAD_NOT_COMPLETE"
	TooLarge            Code = "TOO_LARGE"
	RateLimited         Code = "RATE_LIMITED"
	Unavailable         Code = "UNAVAILABLE"
	Internal            Code = "INTERNAL"
)

var statuses = map[Code]int{
	Validation: 400, IdentityRequired: 401, ForbiddenScope: 403, NotAMember: 403, Forbidden: 403, NotFound: 404,
	Conflict: 409, RoomNotActive: 409, ConsentRequired: 409, LeaseLost: 409, IdempotencyConflict: 409,
	UploadNotComplete: 409, TooLarge: 413, RateLimited: 429, Unavailable: 503, Internal: 500,
}

// Problem is an error that an agent gets to see. Its JSON form is the error envelope of the rooms toolset.
type Problem struct {
	// Code is the kind of problem.
	Code Code `json:"code"`
	// Status is the HTTP status that goes with the code.
	Status int `json:"status"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
	// Retryable is true when the same call may succeed later.
	Retryable bool `json:"retryable"`
	// Fields names the parameters that are wrong.
	Fields []string `json:"fields,omitempty"`
	// Hint is a further step to take.
	Hint string `json:"hint,omitempty"`
	// Holder is who holds the task in question.
	Holder string `json:"holder,omitempty"`
	// Candidates are the handles that could have been meant.
	Candidates []string `json:"candidates,omitempty"`
	// RetryAfterSeconds says when to try again.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
}

// New makes a problem of a code with a formatted message.
func New(code Code, format string, args ...any) *Problem {
	return &Problem{
		Code: code, Status: statuses[code], Message: fmt.Sprintf(format, args...),
		Retryable: code == RateLimited || code == Unavailable,
	}
}

// Invalid makes a VALIDATION problem that names the parameter.
func Invalid(field, format string, args ...any) *Problem {
	p := New(Validation, format, args...)
	p.Message = field + " " + p.Message
	p.Fields = []string{field}
	return p
}

// Error gives code and message.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Message }

// WithHint adds a further step to take.
func (p *Problem) WithHint(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// WithHolder adds who holds the task.
func (p *Problem) WithHolder(holder string) *Problem {
	p.Holder = holder
	return p
}

// WithCandidates adds the handles that could have been meant.
func (p *Problem) WithCandidates(candidates []string) *Problem {
	p.Candidates = candidates
	return p
}

// As finds a Problem in the chain of an error.
func As(err error) (*Problem, bool) {
	return errors.AsType[*Problem](err)
}
