package harness

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// The users that the parts of Agent Rooms are to the API server.
const (
	BridgeUser  = "system:serviceaccount:agentrooms-system:agentrooms-bridge"
	ManagerUser = "system:serviceaccount:agentrooms-system:agentrooms-manager"
)

// AuditEvent is a line of the API server's audit log.
type AuditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// Writes says whether the event is of a call that may have changed something.
func (e AuditEvent) Writes() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.ObjectRef.Resource != "tokenreviews" && e.ObjectRef.Resource != "subjectaccessreviews"
	default:
		return false
	}
}

// Resource gives resource and subresource.
func (e AuditEvent) Resource() string {
	if e.ObjectRef.Subresource == "" {
		return e.ObjectRef.Resource
	}
	return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
}

// Audit gives the audit log since a time, as far as it is written: it trails the answers a little.
func (p *Plane) Audit(tb testing.TB, since time.Time) []AuditEvent {
	tb.Helper()
	f, err := os.Open(p.AuditLog)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var events []AuditEvent
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var e AuditEvent
		if json.Unmarshal(scanner.Bytes(), &e) == nil && !e.RequestReceivedTimestamp.Before(since) {
			events = append(events, e)
		}
	}
	return events
}

// OfTheControlPlane says whether an event is of the cluster itself and not of Agent Rooms.
func (e AuditEvent) OfTheControlPlane() bool {
	user := e.User.Username
	return user == "system:apiserver" || user == "system:kube-controller-manager" ||
		strings.HasPrefix(user, "system:serviceaccount:kube-system:")
}
