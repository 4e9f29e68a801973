package plugin

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

func newList(o *options) *cobra.Command {
	return o.everywhere(o.printed(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List rooms", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}))
}

func (o *options) list(ctx context.Context) error {
	namespace, err := o.inNamespace(ctx)
	if err != nil {
		return err
	}
	var found v1alpha1.RoomList
	if err := o.watch.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return acts.Explain(err, "listing rooms")
	}
	if done, err := objects(o, pointers(found.Items), false); done {
		return err
	}
	t := o.table("DISPLAY NAME", "NAMESPACE", "NAME", "DISPLAY NAME", "STATE", "MEMBERS", "TODO", "DOING", "DONE", "MESSAGES", "AGE", "ID")
	for i := range found.Items {
		r := &found.Items[i]
		n := r.Status.Tasks
		t.Add(r.Namespace, r.Name, r.Spec.DisplayName, string(r.Spec.State), strconv.Itoa(len(r.Spec.Members)), count(n.Todo),
			count(n.Doing), count(n.Done), strconv.FormatInt(r.Status.LastSeq, 10), age(ids.Created(r).Time), ids.ID(r))
	}
	if o.output != "wide" {
		t.Drop("ID")
	}
	return o.write(t, "There are no rooms"+where(namespace)+".")
}

func count(n int32) string { return strconv.FormatInt(int64(n), 10) }

func where(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// newRoom pauses, archives and reactivates.
func newRoom(o *options) *cobra.Command {
	states := map[string]v1alpha1.RoomState{
		"pause": v1alpha1.RoomPaused, "archive": v1alpha1.RoomArchived, "activate": v1alpha1.RoomActive,
	}
	words := []string{"pause", "archive", "activate"}
	return &cobra.Command{
		Use: "room ROOM pause|archive|activate", Short: "Pause a room (agents only read), archive it, or make it active again",
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return words, cobra.ShellCompDirectiveNoFileComp
			}
			return o.completeRooms(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			state, ok := states[args[1]]
			if !ok {
				return problem.New(problem.Validation, "a room can be told to %s, not %q", strings.Join(words, ", "), args[1])
			}
			room, err := o.room(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if room, err = o.person.SetRoomState(cmd.Context(), client.ObjectKeyFromObject(room), state); err != nil {
				return err
			}
			o.say("room %s/%s is %s", room.Namespace, room.Name, string(room.Spec.State))
			return nil
		},
	}
}

// role of a member.
func role(m v1alpha1.RoomMember) string {
	if m.Role == "" {
		return string(v1alpha1.RoleMember)
	}
	return string(m.Role)
}

func newAgents(o *options) *cobra.Command {
	var room string
	var mine bool
	cmd := o.everywhere(o.printed(&cobra.Command{
		Use: "agents", Short: "List agents, their owners and whether they live", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.agents(cmd.Context(), room, mine) },
	}))
	cmd.Flags().StringVar(&room, "room", "", "only members of this room")
	cmd.Flags().BoolVar(&mine, "mine", false, "only those that work for you")
	_ = cmd.RegisterFlagCompletionFunc("room", o.completeRooms)
	return cmd
}

func (o *options) agents(ctx context.Context, ref string, mine bool) error {
	namespace, err := o.inNamespace(ctx)
	if err != nil {
		return err
	}
	roles := map[string]string{}
	var found []*v1alpha1.Agent
	if ref != "" {
		room, err := o.room(ctx, ref)
		if err != nil {
			return err
		}
		if found, err = o.members(ctx, room, roles); err != nil {
			return err
		}
	} else {
		var list v1alpha1.AgentList
		if err := o.watch.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return acts.Explain(err, "listing agents")
		}
		found = pointers(list.Items)
	}
	if mine {
		found = slices.DeleteFunc(found, func(a *v1alpha1.Agent) bool { return a.Spec.Owner != o.person.Name })
	}
	if done, err := objects(o, found, false); done {
		return err
	}
	t := o.table("ALIAS", "NAMESPACE", "NAME", "ALIAS", "ROLE", "LIVE", "READY", "SCOPES", "PLATE", "AGE")
	for _, a := range found {
		t.Add(a.Namespace, a.Name, aliasOf(a), roles[ids.Plate(a)], count(a.Status.LiveInstances), readiness(a), scopes(a), ids.Plate(a),
			age(a.CreationTimestamp.Time))
	}
	if ref == "" {
		t.Drop("ROLE")
	}
	if o.output != "wide" {
		t.Drop("SCOPES")
	}
	return o.write(t, "There are no such agents"+where(namespace)+".")
}

// members gives the agents of a room that the person may see, and notes their roles.
func (o *options) members(ctx context.Context, room *v1alpha1.Room, roles map[string]string) ([]*v1alpha1.Agent, error) {
	m, err := o.person.Members(ctx, room)
	if err != nil {
		return nil, err
	}
	d := directory{byPlate: m.Objects, byName: map[string]*v1alpha1.Agent{}}
	for _, a := range m.Objects {
		d.byName[a.Namespace+"/"+a.Name] = a
	}
	var found []*v1alpha1.Agent
	for _, member := range room.Spec.Members {
		if member.Agent == nil {
			continue
		}
		if a, ok := d.agent(room.Namespace, member.Agent.Plate+member.Agent.Name); ok {
			found = append(found, a)
			roles[ids.Plate(a)] = role(member)
		}
	}
	return found, nil
}

func scopes(a *v1alpha1.Agent) string {
	words := make([]string, len(a.Spec.Scopes))
	for i, s := range a.Spec.Scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

func readiness(a *v1alpha1.Agent) string {
	for _, c := range a.Status.Conditions {
		if c.Type == v1alpha1.ReadyCondition {
			if c.Status == "True" {
				return "True"
			}
			return c.Reason
		}
	}
	return "Unknown"
}
