package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

// Streams are where a command reads and writes.
type Streams struct {
	// In is read by what takes text from a file or a pipe.
	In io.Reader
	// Out takes results, Err everything else.
	Out, Err io.Writer
}

// options are what the commands share.
type options struct {
	Streams
	flags *genericclioptions.ConfigFlags
	// output is what -o says.
	output string
	// noHeaders leaves out the first line of tables.
	noHeaders bool
	// all namespaces instead of one.
	all bool
	// columns of the screen, 0 for no screen.
	columns int

	person *acts.Person
	watch  client.WithWatch
	config *rest.Config
}

// errSilent ends the program with an error that was told already.
var errSilent = errors.New("told already")

// Main runs the plugin and gives its exit code.
func Main(ctx context.Context, version string, args []string, s Streams) int {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	cmd := New(version, s) //nolint:contextcheck // each command has its own context, which ExecuteContext gives it
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
	case ctx.Err() != nil:
		return 130
	default:
		complain(s.Err, err)
	}
	return 1
}

// complain tells a person what is wrong and what to do.
func complain(w io.Writer, err error) {
	p, ok := problem.As(err)
	if !ok {
		_, _ = fmt.Fprintln(w, "error:", terminal.Line(err.Error()))
		return
	}
	_, _ = fmt.Fprintln(w, "error:", terminal.Text(p.Message))
	for _, c := range p.Candidates {
		_, _ = fmt.Fprintln(w, "  candidate:", terminal.Line(c))
	}
	if p.Hint != "" {
		_, _ = fmt.Fprintln(w, "hint:", terminal.Line(p.Hint))
	}
}

// New makes the command kubectl rooms.
func New(version string, s Streams) *cobra.Command {
	o := &options{Streams: s, flags: genericclioptions.NewConfigFlags(true)}
	if f, ok := s.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.columns = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			o.columns = w
		}
	}
	cmd := &cobra.Command{
		Use:   "kubectl-rooms",
		Short: "Rooms where AI agents and people work together",
		Long: `Rooms where AI agents and people work together: look on, speak, give work, decide, and step in.

Everything is done with your own rights at the Kubernetes API. ROOM is a room's name, id or display name, also as
NAMESPACE/NAME; TASK is a task's name or id.`,
		SilenceUsage: true, SilenceErrors: true, Version: version,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl rooms"},
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	o.flags.AddFlags(cmd.PersistentFlags())
	_ = cmd.RegisterFlagCompletionFunc("namespace", o.completeNamespaces)
	cmd.AddCommand(
		newList(o), newBoard(o), newTail(o), newSend(o), newTask(o), newInbox(o), newAccept(o), newReject(o), newConsent(o),
		newAgents(o), newWhoAmI(o), newNew(o), newToken(o), newDoctor(o), newTop(o), newRoom(o),
	)
	return cmd
}

// printed adds the flags of what shows objects.
func (o *options) printed(cmd *cobra.Command, formats ...string) *cobra.Command {
	if len(formats) == 0 {
		formats = []string{"wide", "name", "json", "yaml"}
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "one of "+list(formats))
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the headings of tables")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("output", o.output, formats); err != nil {
			return err
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
	return cmd
}

// everywhere adds the flag for all namespaces.
func (o *options) everywhere(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

// connect makes the clients, once.
func (o *options) connect(ctx context.Context) error {
	if o.person != nil {
		return nil
	}
	if err := o.configure(); err != nil {
		return err
	}
	scheme, err := acts.NewScheme()
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if o.watch, err = client.NewWithWatch(o.config, client.Options{Scheme: scheme, FieldValidation: "Strict"}); err != nil {
		return acts.Explain(err, "connecting")
	}
	me, err := acts.WhoAmI(ctx, o.watch)
	if err != nil {
		return err
	}
	o.person = acts.New(o.watch, me.Username)
	return nil
}

// configure reads how to reach the cluster.
func (o *options) configure() error {
	cfg, err := o.flags.ToRESTConfig()
	if err != nil {
		return problem.New(problem.Validation, "reading the kubeconfig: %v", err).
			WithHint("name a kubeconfig with --kubeconfig or KUBECONFIG, and one of its contexts with --context")
	}
	// A person waits for each answer; what the plugin asks at once is bounded where it asks.
	cfg.QPS = -1
	o.config = cfg
	return nil
}

// namespace gives the namespace to work in, empty for all of them, and whether the person named it.
func (o *options) namespace() (name string, named bool, err error) {
	if o.all {
		return "", true, nil
	}
	name, named, err = o.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("reading the namespace: %w", err)
	}
	return name, named && o.flags.Namespace != nil && *o.flags.Namespace != "", nil
}

// inNamespace connects and gives the namespace to work in.
func (o *options) inNamespace(ctx context.Context) (string, error) {
	if err := o.connect(ctx); err != nil {
		return "", err
	}
	name, _, err := o.namespace()
	return name, err
}

// room connects and finds a room: in the namespace, and in all others when no namespace was named.
func (o *options) room(ctx context.Context, ref string) (*v1alpha1.Room, error) {
	room, err := find(ctx, o, ref, func(ctx context.Context, namespace, ref string) (*v1alpha1.Room, error) {
		return o.person.Room(ctx, namespace, ref)
	})
	return room, err
}

// task connects and finds a task in the same way.
func (o *options) task(ctx context.Context, ref string) (*v1alpha1.Task, error) {
	return find(ctx, o, ref, func(ctx context.Context, namespace, ref string) (*v1alpha1.Task, error) {
		return o.person.Task(ctx, namespace, ref)
	})
}
