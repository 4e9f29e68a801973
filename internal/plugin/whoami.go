package plugin

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
)

func newWhoAmI(o *options) *cobra.Command {
	return o.printed(&cobra.Command{
		Use: "whoami", Short: "Show who you are to the cluster, what you may do, and which agents work for you", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.whoami(cmd.Context()) },
	}, "json", "yaml", "name")
}

// identity is who somebody is, for machines.
type identity struct {
	User      authenticationv1.UserInfo `json:"user"`
	Namespace string                    `json:"namespace"`
	Rights    acts.Rights               `json:"rights"`
	Agents    []string                  `json:"agents"`
}

func (o *options) whoami(ctx context.Context) error {
	namespace, err := o.inNamespace(ctx)
	if err != nil {
		return err
	}
	user, err := acts.WhoAmI(ctx, o.watch)
	if err != nil {
		return err
	}
	me := identity{User: user, Namespace: namespace, Agents: []string{}}
	if me.Rights, err = o.person.Rights(ctx, namespace); err != nil {
		return err
	}
	d := o.directory(ctx, namespace)
	for plate, a := range d.byPlate {
		if a.Spec.Owner == user.Username {
			me.Agents = append(me.Agents, aliasOf(a)+" "+plate)
		}
	}
	slices.Sort(me.Agents)
	switch o.output {
	case "json", "yaml":
		return o.encode(me)
	case "name":
		o.say("%s", user.Username)
		return nil
	}
	s := &sheet{o: o}
	s.line("User", user.Username)
	s.line("Groups", strings.Join(user.Groups, ", "))
	s.line("Namespace", namespace)
	s.line("You may", me.may(true))
	s.line("You may not", me.may(false))
	s.text("Agents that work for you", strings.Join(me.Agents, "\n"))
	return s.write()
}

// may names the rights that somebody has, or has not.
func (i identity) may(has bool) string {
	var words []string
	for _, r := range rightNames(i.Rights) {
		if r.has == has {
			words = append(words, r.name)
		}
	}
	return strings.Join(words, ", ")
}

type right struct {
	name string
	has  bool
}

func rightNames(r acts.Rights) []right {
	return []right{
		{"see rooms", r.ReadRooms}, {"see agents", r.ReadAgents}, {"see tasks", r.ReadTasks}, {"see consents", r.ReadConsents},
		{"read messages", r.ReadMessages}, {"send messages", r.Send}, {"create tasks", r.CreateTasks},
		{"change, decide on, cancel and release tasks", r.ChangeTasks}, {"set your consent", r.SetConsent},
		{"pause and archive rooms", r.ChangeRooms}, {"make tokens of agents", r.MintTokens},
	}
}

// completion answers with what begins as the person typed, and with nothing when the cluster cannot be asked.
func completion(cmd *cobra.Command, names func(ctx context.Context) ([]string, error), start string) ([]string, cobra.ShellCompDirective) {
	found, err := names(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found = slices.DeleteFunc(found, func(n string) bool { return !strings.HasPrefix(n, start) })
	return found, cobra.ShellCompDirectiveNoFileComp
}

// maxCompletions that a shell is offered.
const maxCompletions = 500

func (o *options) completeRooms(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completion(cmd, func(ctx context.Context) ([]string, error) { return o.names(ctx, &v1alpha1.RoomList{}) }, start)
}

func (o *options) completeTasks(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return completion(cmd, func(ctx context.Context) ([]string, error) { return o.names(ctx, &v1alpha1.TaskList{}) }, start)
}

func (o *options) completeAgents(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return completion(cmd, func(ctx context.Context) ([]string, error) { return o.names(ctx, &v1alpha1.AgentList{}) }, start)
}

func (o *options) completeNamespaces(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return completion(cmd, func(ctx context.Context) ([]string, error) {
		if err := o.connect(ctx); err != nil {
			return nil, err
		}
		var list v1alpha1.RoomList
		if err := o.watch.List(ctx, &list); err != nil {
			return nil, acts.Explain(err, "listing rooms")
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Namespace)
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	}, start)
}

// names gives the names of objects in the namespace.
func (o *options) names(ctx context.Context, list client.ObjectList) ([]string, error) {
	namespace, err := o.inNamespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.watch.List(ctx, list, client.InNamespace(namespace), client.Limit(maxCompletions)); err != nil {
		return nil, acts.Explain(err, "listing names")
	}
	var names []string
	switch l := list.(type) {
	case *v1alpha1.RoomList:
		for i := range l.Items {
			names = append(names, l.Items[i].Name)
		}
	case *v1alpha1.TaskList:
		for i := range l.Items {
			names = append(names, l.Items[i].Name)
		}
	case *v1alpha1.AgentList:
		for i := range l.Items {
			names = append(names, l.Items[i].Name)
		}
	}
	return names, nil
}
