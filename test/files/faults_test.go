package files

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// storeDown makes the store unreachable, calls everything, and calls it again when the store is back.
func storeDown(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(1000)
	id := p.write(t, "plan.md", "hello").FileID
	shared := p.share(t, "pic.png", content)
	if status, text := put(t, shared.UploadURL, shared.Headers, content); status != http.StatusOK {
		t.Fatalf("the upload is answered %d: %s", status, text)
	}
	needStore := []struct {
		tool string
		args harness.Args
	}{
		{"read_file", p.args("path", "plan.md")},
		{"read_file", p.args("path", "plan.md", "range", harness.Args{"start_line": 1})},
		{"write_file", p.args("path", "new.md", "content", "new", "idempotency_key", "k")},
		{"write_file", p.args("path", "plan.md", "content", "hello", "idempotency_key", "l")}, // content that is there already
		{"fetch_file", harness.Args{"file_id": id}},
		{"complete_file_upload", harness.Args{"file_id": shared.FileID}},
	}
	s.down()
	up := false
	defer func() {
		if !up {
			s.up()
		}
	}()
	for _, session := range []*harness.Session{p.writer, p.At(1, "ada", "a2")} {
		for _, c := range needStore {
			e := harness.Refused(t, session, "UNAVAILABLE", c.tool, c.args)
			if !e.Retryable || strings.Contains(e.Message+e.Hint, s.DataDir) || strings.Contains(e.Message+e.Hint, "127.0.0.1") {
				t.Errorf("%s is told %+v of a store that is down", c.tool, e)
			}
		}
		if got := p.list(t, session); len(got) != 1 || got[0] != "plan.md" {
			t.Errorf("while the store is down the list is %q", got)
		}
	}
	s.up()
	up = true
	for _, c := range needStore {
		if r := p.writer.Call(t, c.tool, c.args); r.Err != nil {
			t.Errorf("%s, when the store is back, is told %v", c.tool, r.Err)
		}
	}
	if got := harness.Get[rooms.FileRead](t, p.writer, "read_file", p.args("path", "new.md")); got.Content != "new" || got.Version != 1 {
		t.Errorf("what was written again reads %+v", got)
	}
}

// kills kills a bridge when it has stored the content and not yet the version, and looks what is left.
func kills(t *testing.T, s *setup) {
	p := s.place(t, nil)
	acknowledged := p.write(t, "plan.md", "acknowledged")
	second := p.At(1, "ada", "a2")
	reached, end := holdFiles(t, p)
	args := p.args("path", "plan.md", "content", "never acknowledged", "idempotency_key", "k")
	answered := make(chan error, 1)
	go func() {
		_, err := second.Do(context.Background(), "write_file", args)
		answered <- err
	}()
	<-reached
	if n := s.objects(t, p.uid, "content"); n != 2 {
		t.Errorf("before the version is written the store holds %d contents, want both", n)
	}
	if _, ok := s.KillChild(t, "bridge-1"); !ok {
		t.Fatal("there is no bridge to kill")
	}
	if err := <-answered; err == nil {
		t.Error("the killed bridge answered")
	}
	end()
	for _, session := range []*harness.Session{p.writer, p.revived(t)} {
		got := harness.Get[rooms.FileRead](t, session, "read_file", p.args("path", "plan.md"))
		if got.Content != "acknowledged" || got.Version != acknowledged.Version {
			t.Errorf("after the kill the file reads %+v", got)
		}
	}
	if _, ok := s.KillChild(t, "manager"); !ok { // the next one sweeps what it finds
		t.Fatal("there is no manager to kill")
	}
	harness.Await(t, "the content without a version to be collected", func() bool {
		return s.objects(t, p.uid, "content") == 1 && s.objects(t, p.uid, "trash") == 0
	})
	again := harness.Get[rooms.FileWritten](t, p.revived(t), "write_file", args)
	if again.Version != 2 || again.Duplicate {
		t.Errorf("the same call again gives %+v", again)
	}
	if got := p.read(t, "path", "plan.md", "version", 1); got.Content != "acknowledged" {
		t.Errorf("the acknowledged version reads %+v", got)
	}
}

// revived connects to the replica that was killed, as soon as it serves again.
func (p *place) revived(t *testing.T) *harness.Session {
	t.Helper()
	harness.Await(t, "the bridge to be back", func() bool {
		answer, err := http.Get(strings.TrimSuffix(p.store.Replicas[1], "/mcp") + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p.At(1, "ada", "revived")
}

// holdFiles has the API server hold whatever is written to Files of the place, until end is called; then it is refused. reached tells
// of each write that is held.
func holdFiles(t *testing.T, p *place) (reached <-chan struct{}, end func()) {
	t.Helper()
	first, over := make(chan struct{}, 16), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		if tried := review.Request.DryRun; tried == nil || !*tried {
			first <- struct{}{}
			<-over
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	hook := holding(p.Namespace, server)
	if err := p.store.Client.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	end = func() {
		close(over)
		if err := p.store.Client.Delete(context.Background(), hook); err != nil {
			t.Error(err)
		}
	}
	p.awaitHook(t)
	return first, end
}

// awaitHook waits until the API server asks the hook: it refuses a write that is only tried.
func (p *place) awaitHook(t *testing.T) {
	t.Helper()
	file := p.objects(t)[0]
	file.Labels["tried"] = "yes"
	harness.Await(t, "the hook to be in force", func() bool {
		return p.store.Client.Update(t.Context(), file.DeepCopy(), client.DryRunAll) != nil
	})
}

func holding(namespace string, server *httptest.Server) *admissionregistrationv1.ValidatingWebhookConfiguration {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hold-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "hold.files.test",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: ca},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(30)),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"agentrooms.dev"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"files"},
				},
			}},
		}},
	}
}
