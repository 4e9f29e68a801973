package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// auditPolicy notes each request once it is answered, and each watch when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// audit makes the API server write down every request.
func (e *Env) audit() error {
	dir, err := os.MkdirTemp("", "testenv-audit-")
	if err != nil {
		return fmt.Errorf("making a folder for the audit log: %w", err)
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	e.auditLog = filepath.Join(dir, "audit.log")
	e.server.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", e.auditLog).
		Set("audit-log-mode", "blocking")
	return nil
}

// Request is a line of the API server's audit log.
type Request struct {
	// User who asked.
	User string
	// Verb as roles name it.
	Verb string
	// Group, Resource and Subresource that were asked for.
	Group, Resource, Subresource string
	// Namespace and Name of the object.
	Namespace, Name string
	// Code of the answer.
	Code int
}

// Write says whether the request is one that changes something.
func (r Request) Write() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// Rule gives the request as a role names it: verb group/resource/subresource.
func (r Request) Rule() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return r.Verb + " " + r.Group + " " + resource
}

// line is how the API server writes a request down.
type line struct {
	Verb           string
	User           struct{ Username string }
	Impersonated   *struct{ Username string } `json:"impersonatedUser"`
	ObjectRef      *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

// Requests gives what a user has asked of the API server about objects, oldest first. The log may trail the answers by a
// moment.
func (e *Env) Requests(tb testing.TB, user string) []Request {
	tb.Helper()
	raw, err := os.ReadFile(e.auditLog)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		tb.Fatalf("reading the audit log: %v", err)
	}
	var requests []Request
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		if json.Unmarshal(scanner.Bytes(), &l) != nil || l.ObjectRef == nil {
			continue // The last line may be half written.
		}
		who := l.User.Username
		if l.Impersonated != nil {
			who = l.Impersonated.Username
		}
		if who != user {
			continue
		}
		requests = append(requests, Request{
			User: who, Verb: l.Verb, Group: l.ObjectRef.APIGroup, Resource: l.ObjectRef.Resource,
			Subresource: l.ObjectRef.Subresource, Namespace: l.ObjectRef.Namespace, Name: l.ObjectRef.Name,
			Code: l.ResponseStatus.Code,
		})
	}
	return requests
}
