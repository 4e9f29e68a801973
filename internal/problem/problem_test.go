package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/problem"
)

func TestEveryCodeHasItsStatusAndSaysWhetherToRetry(t *testing.T) {
	tests := map[problem.Code]struct {
		status    int
		retryable bool
	}{
		"VALIDATION": {400, false}, "IDENTITY_REQUIRED": {401, false}, "FORBIDDEN_SCOPE": {403, false}, "NOT_A_MEMBER": {403, false},
		"FORBIDDEN": {403, false}, "NOT_FOUND": {404, false}, "CONFLICT": {409, false}, "ROOM_NOT_ACTIVE": {409, false},
		"CONSENT_REQUIRED": {409, false}, "LEASE_LOST": {409, false}, "IDEMPOTENCY_CONFLICT": {409, false},
		"UPLOAD_NOT_COMPLETE": {409, false}, "TOO_LARGE": {413, false}, "RATE_LIMITED": {429, true}, "UNAVAILABLE": {503, true},
		"INTERNAL": {500, false},
	}
	for code, want := range tests {
		p := problem.New(code, "no %s", "luck")
		if p.Code != code || p.Status != want.status || p.Retryable != want.retryable || p.Message != "no luck" {
			t.Errorf("%s: got %+v, want status %d, retryable %v", code, p, want.status, want.retryable)
		}
	}
}

func TestTheJSONFormIsTheErrorEnvelope(t *testing.T) {
	tests := map[string]struct {
		problem *problem.Problem
		want    map[string]any
	}{
		"the least of it": {
			problem.New(problem.NotFound, "no such task"),
			map[string]any{"code": "NOT_FOUND", "status": 404.0, "message": "no such task", "retryable": false},
		},
		"all of it": {
			problem.Invalid("to", "names %d agents", 2).WithHint("name %s", "one").WithHolder("alice/s1").WithCandidates([]string{"@cc(said)"}),
			map[string]any{
				"code": "VALIDATION", "status": 400.0, "message": "to names 2 agents", "retryable": false, "fields": []any{"to"},
				"hint": "name one", "holder": "alice/s1", "candidates": []any{"@cc(said)"},
			},
		},
		"when to try again": {
			&problem.Problem{Code: problem.RateLimited, Status: 429, Message: "slow down", Retryable: true, RetryAfterSeconds: 7},
			map[string]any{"code": "RATE_LIMITED", "status": 429.0, "message": "slow down", "retryable": true, "retry_after_seconds": 7.0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.problem)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProblemIsFoundInTheChainOfAnError(t *testing.T) {
	p := problem.New(problem.Conflict, "too late")
	if got, ok := problem.As(fmt.Errorf("claiming: %w", p)); !ok || got != p {
		t.Errorf("got %v, %v", got, ok)
	}
	for _, err := range []error{nil, errors.New("too late")} {
		if got, ok := problem.As(err); ok {
			t.Errorf("found %v in %v", got, err)
		}
	}
	if got := p.Error(); got != "CONFLICT: too late" {
		t.Errorf("got %q", got)
	}
}
