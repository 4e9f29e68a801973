package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

// verdict of a check.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warning"
	broken  verdict = "broken"
	unknown verdict = "unknown"
)

// finding is what a check found.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Says    string  `json:"says"`
	Advice  string  `json:"advice,omitempty"`
}

// doctor looks at a set-up.
type doctor struct {
	o                *options
	bridge, metrics  string
	agent, audience  string
	namespace        string
	findings         []finding
	skew             time.Duration
	client           *http.Client
	bridgeAnswers    bool
	connectionFailed bool
}

// checkTimeout bounds each check.
const checkTimeout = 10 * time.Second

func newDoctor(o *options) *cobra.Command {
	d := &doctor{o: o}
	cmd := o.everywhere(o.printed(&cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with your set-up",
		Long: `Look for what is wrong with your set-up: the connection and the clock, kinds and policies, your rights, the manager, stuck
leases, and the bridge. It changes nothing. It ends with 1 when something is broken.

The bridge is asked through the API server, which takes the right to proxy to its service, or at --bridge. With --agent it is called
with a token of that agent, which shows whether audience and Agent are in order.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}, "json", "yaml"))
	f := cmd.Flags()
	f.StringVar(&d.bridge, "bridge", "", "URL of the bridge, as in http://127.0.0.1:7600/mcp")
	f.StringVar(&d.metrics, "metrics", "", "URL of the bridge's metrics, as in http://127.0.0.1:9090/metrics")
	f.StringVar(&d.agent, "agent", "", "call the bridge as this agent")
	f.StringVar(&d.audience, "audience", audience, "audience that the bridge takes tokens for")
	_ = cmd.RegisterFlagCompletionFunc("agent", o.completeAgents)
	return cmd
}

func (d *doctor) run(ctx context.Context) error {
	d.client = &http.Client{Timeout: checkTimeout}
	checks := []func(context.Context) error{
		d.checkConnection, d.checkKinds, d.checkPolicies, d.checkRights, d.checkManager, d.checkLeases, d.checkBridge, d.checkToken, d.checkLag,
	}
	names := []string{"connection", "kinds", "policies", "rights", "manager", "leases", "bridge", "token", "cache lag"}
	for i, check := range checks {
		if d.connectionFailed {
			break
		}
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		err := check(limited)
		cancel()
		if err != nil {
			d.failed(names[i], err)
		}
	}
	if err := d.report(); err != nil {
		return err
	}
	for _, f := range d.findings {
		if f.Verdict == broken {
			return errSilent
		}
	}
	return nil
}

func (d *doctor) add(check string, v verdict, advice, format string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Verdict: v, Says: fmt.Sprintf(format, args...), Advice: advice})
}

// failed notes that a check could not be made: what one may not see is not known, and not broken.
func (d *doctor) failed(check string, err error) {
	p, ok := problem.As(err)
	switch {
	case ok && p.Code == problem.Forbidden:
		d.add(check, unknown, p.Hint, "%s", p.Message)
	case ok:
		d.add(check, broken, p.Hint, "%s", p.Message)
	case errors.Is(err, context.DeadlineExceeded):
		d.add(check, broken, "", "no answer in %s", checkTimeout)
	default:
		d.add(check, broken, "", "%v", err)
	}
}

func (d *doctor) report() error {
	switch d.o.output {
	case "json", "yaml":
		return d.o.encode(map[string]any{"findings": d.findings})
	}
	var b strings.Builder
	for _, f := range d.findings {
		fmt.Fprintf(&b, "%-8s %-11s ", f.Verdict, f.Check)
		says := terminal.Wrap(terminal.Text(f.Says), d.o.columns-21)
		if f.Advice != "" {
			says = append(says, terminal.Wrap("→ "+terminal.Text(f.Advice), d.o.columns-21)...)
		}
		b.WriteString(strings.Join(says, "\n"+strings.Repeat(" ", 21)) + "\n")
	}
	if _, err := d.o.Out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	return nil
}

// Bounds of the clock's difference. Leases are judged by the manager's clock alone; people and tokens go by the others.
const (
	skewWarning = 5 * time.Second
	skewBroken  = 5 * time.Minute
)

// checkConnection asks the API server for its version, and for the time in passing.
func (d *doctor) checkConnection(ctx context.Context) error {
	if err := d.o.configure(); err != nil {
		d.connectionFailed = true
		return err
	}
	client, err := rest.HTTPClientFor(d.o.config)
	if err != nil {
		d.connectionFailed = true
		return problem.New(problem.Validation, "the kubeconfig cannot be used: %v", err)
	}
	host, _, err := rest.DefaultServerUrlFor(d.o.config)
	if err != nil {
		d.connectionFailed = true
		return problem.New(problem.Validation, "the kubeconfig names no usable server: %v", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("asking for the version: %w", err)
	}
	sent := time.Now()
	response, err := client.Do(request)
	if err != nil {
		d.connectionFailed = true
		return problem.New(problem.Unavailable, "the API server at %s does not answer: %v", host.Host, err)
	}
	_ = response.Body.Close()
	if err := d.o.connect(ctx); err != nil {
		d.connectionFailed = true
		return err
	}
	d.add("connection", fine, "", "the API server at %s answers, and knows you as %s", host.Host, d.o.person.Name)
	d.checkClock(response, sent, time.Now())
	d.namespace, _, err = d.o.namespace()
	return err
}

// checkClock compares the time of an answer, which comes in whole seconds, with this machine's.
func (d *doctor) checkClock(response *http.Response, sent, received time.Time) {
	theirs, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		d.add("clock", unknown, "", "the API server does not say what time it is")
		return
	}
	switch {
	case theirs.Add(time.Second).Before(sent):
		d.skew = theirs.Add(time.Second).Sub(sent)
	case theirs.After(received):
		d.skew = theirs.Sub(received)
	}
	const advice = "set this machine's clock (NTP): tokens and the times shown here go by it"
	switch off := d.skew.Abs(); {
	case off >= skewBroken:
		d.add("clock", broken, advice, "the API server's clock differs by %s", d.skew.Round(time.Second))
	case off >= skewWarning:
		d.add("clock", warning, advice, "the API server's clock differs by %s", d.skew.Round(time.Second))
	default:
		d.add("clock", fine, "", "this machine and the API server agree on the time, to a second or so")
	}
}

func (d *doctor) checkRights(ctx context.Context) error {
	r, err := d.o.person.Rights(ctx, d.namespace)
	if err != nil {
		return err
	}
	me := identity{Rights: r}
	place := "in all namespaces"
	if d.namespace != "" {
		place = "in namespace " + d.namespace
	}
	const advice = "the ClusterRoles view and edit, and agentrooms-message-viewer and agentrooms-message-sender, hold these rights: " +
		"an admin binds them by RoleBindings"
	switch may := me.may(true); {
	case !r.ReadRooms || !r.ReadTasks:
		d.add("rights", broken, advice, "%s you may not see rooms and tasks", place)
	case me.may(false) == "":
		d.add("rights", fine, "", "%s you may do everything", place)
	default:
		d.add("rights", fine, advice, "%s you may %s; you may not %s", place, may, me.may(false))
	}
	return nil
}

func (d *doctor) rights(ctx context.Context, need ...acts.Right) bool {
	ok, err := d.o.person.Can(ctx, "", need...)
	return err == nil && ok
}
