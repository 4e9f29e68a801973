package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

func newNew(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "new", Short: "Write the manifest of a room or an agent, to be changed and applied",
		Example: `  kubectl rooms new room research --display-name Research --agent cc:Admin --user maya > room.yaml
  kubectl rooms new agent reviewer --scopes Read,Write | kubectl apply -f -`,
	}
	cmd.AddCommand(newNewRoom(o), newNewAgent(o))
	return cmd
}

// objectName says whether a name can be one of the kinds.
func objectName(name string) error {
	if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
		return problem.New(problem.Validation, "%q can be no name: %s", name, bad[0])
	}
	return nil
}

func newNewRoom(o *options) *cobra.Command {
	var display, description string
	var agents, users []string
	var lease int32
	cmd := &cobra.Command{
		Use: "room NAME", Short: "Write the manifest of a room", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := objectName(args[0]); err != nil {
				return err
			}
			namespace, _, err := o.namespace()
			if err != nil {
				return err
			}
			r := &v1alpha1.Room{
				TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: args[0]},
				Spec:       v1alpha1.RoomSpec{DisplayName: display, Description: description},
			}
			if display == "" {
				r.Spec.DisplayName = args[0]
			}
			if lease > 0 {
				r.Spec.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: lease, OnExpiry: v1alpha1.LeaseReopen}
			}
			if r.Spec.Members, err = members(agents, users); err != nil {
				return err
			}
			return o.manifest(r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&display, "display-name", "", "what people and agents call it; the name when absent")
	f.StringVar(&description, "description", "", "what it is for")
	f.StringSliceVar(&agents, "agent", nil, "a member: name or plate of an agent, and its role: cc:Admin; may be repeated")
	f.StringSliceVar(&users, "user", nil, "a member: username of a person, and their role: maya=Viewer; may be repeated")
	f.Int32Var(&lease, "lease-seconds", 0, "how long a claim lasts without renewal: 10 to 86400, 600 when absent")
	_ = cmd.RegisterFlagCompletionFunc("agent", o.completeAgents)
	return cmd
}

// members reads members and their roles. Usernames may hold colons, so that their role stands behind an equals sign.
func members(agents, users []string) ([]v1alpha1.RoomMember, error) {
	var list []v1alpha1.RoomMember
	for _, word := range agents {
		name, role, _ := strings.Cut(word, ":")
		m := v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: name}}
		if ids.IsPlate(name) {
			m.Agent = &v1alpha1.AgentReference{Plate: name}
		} else if err := objectName(name); err != nil {
			return nil, err
		}
		if err := setRole(&m, role); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	for _, word := range users {
		name, role, _ := strings.Cut(word, "=")
		m := v1alpha1.RoomMember{User: name}
		if err := setRole(&m, role); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func setRole(m *v1alpha1.RoomMember, role string) error {
	switch r := v1alpha1.RoomRole(role); r {
	case "":
		m.Role = v1alpha1.RoleMember
	case v1alpha1.RoleAdmin, v1alpha1.RoleMember, v1alpha1.RoleViewer:
		m.Role = r
	default:
		return problem.New(problem.Validation, "a role is one of Admin, Member, Viewer, not %q", role)
	}
	return nil
}

func newNewAgent(o *options) *cobra.Command {
	var display, owner, account string
	var scopeNames []string
	var decides bool
	cmd := &cobra.Command{
		Use: "agent NAME", Short: "Write the manifests of an agent and its service account", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{args[0], account} {
				if err := objectName(name + map[bool]string{true: args[0]}[name == ""]); err != nil {
					return err
				}
			}
			if owner == "" {
				if err := o.connect(cmd.Context()); err != nil {
					return fmt.Errorf("finding out whom the agent works for (--owner says it without asking): %w", err)
				}
				owner = o.person.Name
			}
			a, err := o.agentManifest(args[0], display, owner, account, scopeNames)
			if err != nil {
				return err
			}
			if decides {
				a.Spec.Delegations = []v1alpha1.Delegation{v1alpha1.DelegationConsent}
			}
			return o.manifest(&corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Spec.Subjects[0].Name},
			}, a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&display, "display-name", "", "the alias that others mention; the name when absent")
	f.StringVar(&owner, "owner", "", "username of the person it works for; you when absent")
	f.StringVar(&account, "service-account", "", "service account that may act as it; one of its name when absent")
	f.StringSliceVar(&scopeNames, "scopes", []string{"Read", "Write"}, "what it may do: Read, Write, Upload, Download, Invoke")
	f.BoolVar(&decides, "decides", false, "it may decide on proposals in its owner's name")
	_ = cmd.RegisterFlagCompletionFunc("scopes", cobra.FixedCompletions(
		[]string{"Read", "Write", "Upload", "Download", "Invoke"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) agentManifest(name, display, owner, account string, scopeNames []string) (*v1alpha1.Agent, error) {
	namespace, _, err := o.namespace()
	if err != nil {
		return nil, err
	}
	if display == "" {
		display = name
	}
	if account == "" {
		account = name
	}
	a := &v1alpha1.Agent{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Agent"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.AgentSpec{
			DisplayName: display, Owner: owner, Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: account}},
		},
	}
	for _, word := range scopeNames {
		switch s := v1alpha1.Scope(word); s {
		case v1alpha1.ScopeRead, v1alpha1.ScopeWrite, v1alpha1.ScopeUpload, v1alpha1.ScopeDownload, v1alpha1.ScopeInvoke:
			a.Spec.Scopes = append(a.Spec.Scopes, s)
		default:
			return nil, problem.New(problem.Validation, "a scope is one of Read, Write, Upload, Download, Invoke, not %q", word)
		}
	}
	return a, nil
}

// manifest writes objects as they are applied: without what the cluster fills in.
func (o *options) manifest(objects ...runtime.Object) error {
	for i, obj := range objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return fmt.Errorf("writing the manifest: %w", err)
		}
		delete(u, "status")
		if meta, ok := u["metadata"].(map[string]any); ok {
			delete(meta, "creationTimestamp")
		}
		if i > 0 {
			_, _ = fmt.Fprintln(o.Out, "---")
		}
		if err := terminal.YAML(o.Out, u); err != nil {
			return err //nolint:wrapcheck // says itself what it did
		}
	}
	return nil
}
