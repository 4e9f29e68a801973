package v1alpha1_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/test/testenv"
)

// table gives an object as `kubectl get` prints it.
func table(t *testing.T, env *testenv.Env, o client.Object) metav1.Table {
	t.Helper()
	mapping, err := env.Client.RESTMapper().RESTMapping(o.GetObjectKind().GroupVersionKind().GroupKind())
	must(t, err)
	httpClient, err := rest.HTTPClientFor(env.Config)
	must(t, err)
	url := strings.TrimSuffix(env.Config.Host, "/") + "/apis/agentrooms.dev/v1alpha1/namespaces/default/" + mapping.Resource.Resource + "/" + o.GetName()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := httpClient.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	var out metav1.Table
	if err := json.Unmarshal(body, &out); err != nil || len(out.Rows) != 1 {
		t.Fatalf("%s answers %s %q: %v", url, response.Status, body, err)
	}
	return out
}

// TestAZeroIsPrinted looks at each kind before anybody has counted anything: nothing is 0, and no blank.
func TestAZeroIsPrinted(t *testing.T) {
	c, env := server(t), testenv.Get(t)
	checked := 0
	for kind, manifest := range full {
		u := object(t, manifest, "status: null")
		must(t, create(t, c, u))
		got := table(t, env, u)
		for i, column := range got.ColumnDefinitions {
			if column.Type != "integer" {
				continue
			}
			if checked++; got.Rows[0].Cells[i] == nil {
				t.Errorf("%s: the column %s of a new object is blank", kind, column.Name)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d columns were looked at", checked)
	}
}
