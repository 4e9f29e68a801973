package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"

	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// maxAnswer bounds what is read of an answer of a bridge.
const maxAnswer = 4 << 20

// checkBridge asks the bridge whether it is ready: at its URL, or through the API server.
func (d *doctor) checkBridge(ctx context.Context) error {
	const advice = "see the log of the bridge, and kubectl get pods -n agentrooms-system; " +
		"with a local plane or from elsewhere, say where it is with --bridge"
	if d.bridge == "" {
		if !d.rights(ctx, acts.Right{Resource: "services", Subresource: "proxy", Verb: "get"}) {
			d.add("bridge", unknown, "say where it is with --bridge", "you may not ask it through the API server")
			return nil
		}
		_, err := d.throughServer(ctx, "agentrooms-bridge", "mcp", "readyz")
		if err != nil {
			d.add("bridge", warning, advice, "it does not answer through the API server: %v", err)
			return nil
		}
		d.bridgeAnswers = true
		d.add("bridge", fine, "", "it is ready, asked through the API server")
		return nil
	}
	at, err := url.Parse(d.bridge)
	if err != nil || at.Host == "" {
		return problem.New(problem.Validation, "--bridge is no URL: %q", d.bridge)
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = "/mcp"
		d.bridge = at.String()
	}
	status, body, err := d.get(ctx, at.Scheme+"://"+at.Host+"/readyz")
	switch {
	case err != nil:
		d.add("bridge", broken, advice, "it cannot be reached at %s: %v", at.Host, err)
	case status != http.StatusOK:
		d.add("bridge", broken, advice, "it is not ready (%d): %s", status, body)
	default:
		d.bridgeAnswers = true
		d.add("bridge", fine, "", "it is ready at %s", at.Host)
	}
	return nil
}

// throughServer reads from a service of the system by the API server's proxy.
func (d *doctor) throughServer(ctx context.Context, name, port, path string) ([]byte, error) {
	c, err := kubernetes.NewForConfig(d.o.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	body, err := c.CoreV1().Services(install.Namespace).ProxyGet("http", name, port, path, nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking service %s: %w", name, err)
	}
	return body, nil
}

func (d *doctor) get(ctx context.Context, at string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking: %w", err)
	}
	return d.do(request)
}

func (d *doctor) do(request *http.Request) (int, []byte, error) {
	response, err := d.client.Do(request)
	if err != nil {
		return 0, nil, err //nolint:wrapcheck // says itself what it asked
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer: %w", err)
	}
	return response.StatusCode, body, nil
}

// checkToken calls the bridge as an agent.
func (d *doctor) checkToken(ctx context.Context) error {
	if d.agent == "" || d.bridge == "" || !d.bridgeAnswers {
		if d.agent != "" {
			d.add("token", unknown, "say where the bridge is with --bridge", "the bridge cannot be called as an agent")
		}
		return nil
	}
	agent, err := d.o.agent(ctx, d.agent)
	if err != nil {
		return err
	}
	minted, err := d.o.mint(ctx, agent, &minting{audience: d.audience, life: minLife})
	if err != nil {
		return err
	}
	answer, err := d.call(ctx, minted.Token)
	if err != nil {
		return err
	}
	switch {
	case answer.status == http.StatusUnauthorized:
		d.add("token", broken, "the bridge's --audience and yours must be the same, and the API server must issue tokens for it",
			"the bridge does not take a token for the audience %s", d.audience)
	case answer.code != "":
		d.add("token", broken, "kubectl rooms agents shows whether the Agent is in order", "as %s the bridge says %s: %s", aliasOf(agent), answer.code, answer.message)
	case answer.status != http.StatusOK:
		d.add("token", broken, "", "as %s the bridge answers %d", aliasOf(agent), answer.status)
	default:
		d.add("token", fine, "", "the bridge takes a token for the audience %s, and knows %s by it", d.audience, aliasOf(agent))
	}
	return nil
}

// called is what a bridge answers to an agent.
type called struct {
	status        int
	code, message string
}

// call asks the bridge who an agent is.
func (d *doctor) call(ctx context.Context, token string) (called, error) {
	const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.bridge, bytes.NewReader([]byte(ask)))
	if err != nil {
		return called{}, fmt.Errorf("calling the bridge: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	status, body, err := d.do(request)
	if err != nil {
		return called{}, problem.New(problem.Unavailable, "calling the bridge: %v", err)
	}
	var answer struct {
		Result struct {
			StructuredContent struct {
				Error struct {
					Code    string `json:"code"`
					Message string `json:"message"`
				} `json:"error"`
			} `json:"structuredContent"`
		} `json:"result"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // what is no JSON says nothing more than its status
	out := called{status: status, code: answer.Result.StructuredContent.Error.Code, message: answer.Result.StructuredContent.Error.Message}
	if answer.Error.Message != "" {
		out.code, out.message = "an error", answer.Error.Message
	}
	return out, nil
}

// lagWarning is how far behind the watch of a bridge may be.
const lagWarning = time.Second

// checkLag reads how far the bridge's view is behind from its metrics.
func (d *doctor) checkLag(ctx context.Context) error {
	families, err := d.scrape(ctx)
	if err != nil || families == nil {
		d.add("cache lag", unknown, "say where the bridge's metrics are with --metrics", "the bridge's metrics cannot be read%s", because(err))
		return nil
	}
	lag := families["agentrooms_cache_lag_seconds"]
	if lag == nil || len(lag.GetMetric()) == 0 || lag.GetMetric()[0].GetHistogram().GetSampleCount() == 0 {
		d.add("cache lag", fine, "", "the bridge has written nothing yet to measure it by")
		return nil
	}
	p99 := quantile(lag.GetMetric()[0].GetHistogram(), 0.99)
	says := fmt.Sprintf("99%% of the bridge's writes come back by the watch within %s", p99)
	if p99 > lagWarning {
		d.add("cache lag", warning, "the API server or the bridge is overloaded: look at both processors, and at the API server's metrics", "%s", says)
	} else {
		d.add("cache lag", fine, "", "%s", says)
	}
	if n := total(families["agentrooms_panics_total"]); n > 0 {
		d.add("bridge", warning, "each is a bug: see the bridge's log, and report it", "it has caught %.0f panics", n)
	}
	return nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// scrape reads the bridge's metrics, nil when there is no way to.
func (d *doctor) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	var body []byte
	if d.metrics != "" {
		status, got, err := d.get(ctx, d.metrics)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, problem.New(problem.Unavailable, "%s answers %d", d.metrics, status)
		}
		body = got
	} else {
		if !d.rights(ctx, acts.Right{Resource: "services", Subresource: "proxy", Verb: "get"}) {
			return nil, nil
		}
		got, err := d.throughServer(ctx, "agentrooms-bridge-metrics", "metrics", "metrics")
		if err != nil {
			return nil, err
		}
		body = got
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	return families, nil
}

// quantile gives the upper end of the bucket that a part of the observations lie below.
func quantile(h *dto.Histogram, part float64) time.Duration {
	for _, b := range h.GetBucket() {
		if float64(b.GetCumulativeCount()) >= part*float64(h.GetSampleCount()) && !math.IsInf(b.GetUpperBound(), 1) {
			return time.Duration(b.GetUpperBound() * float64(time.Second))
		}
	}
	return time.Minute
}

// total sums a counter over its labels.
func total(f *dto.MetricFamily) float64 {
	sum := 0.0
	for _, m := range f.GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}
