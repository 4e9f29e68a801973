package rooms

import (
	"context"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

func (t *Toolset) resolveHandle(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	h, p := handles.Parse("handle", args.String("handle"))
	if p != nil {
		return nil, p
	}
	out := Candidates{Candidates: []Candidate{}}
	for _, match := range handles.Match(h, a.members.Handles) {
		candidate := Candidate{Plate: match.Plate, Alias: match.Alias(), LiveInstances: []LiveInstance{}}
		for _, i := range t.view.Instances(match.Plate) {
			if h.Session == "" || h.Session == i.Session {
				candidate.LiveInstances = append(candidate.LiveInstances, LiveInstance{
					SessionID: i.Session, Summary: t.summary(match.Plate, i), Wakeable: i.Wakeable(),
				})
			}
		}
		out.Candidates = append(out.Candidates, candidate)
	}
	return out, nil
}

// summary says in a line what an instance is on: the tasks it holds, else what it said of itself.
func (t *Toolset) summary(plate string, i view.Instance) string {
	held := t.view.HeldBy(plate, i.Session)
	if len(held) == 0 {
		return i.Lease.Annotations[v1alpha1.SummaryAnnotation]
	}
	line := "working on: " + held[0].Spec.Title
	if len(held) > 1 {
		line += " (and more)"
	}
	return tasks.Truncate(line, 160)
}

func (t *Toolset) listInstances(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	members := a.members.Sorted
	if handle := args.String("plate"); handle != "" {
		one, _, p := handles.Resolve("plate", handle, a.members.Handles)
		if p != nil {
			return nil, p
		}
		members = []view.Member{a.members.Agents[one.Plate]}
	}
	out := InstanceList{Instances: []InstanceInfo{}}
	for _, m := range members {
		for _, i := range t.view.Instances(m.Plate) {
			info := InstanceInfo{
				Plate: m.Plate, Alias: m.Alias(), SessionID: i.Session, Summary: t.summary(m.Plate, i), Wakeable: i.Wakeable(),
				Host: i.Lease.Annotations[v1alpha1.HostAnnotation], Workspace: i.Lease.Annotations[v1alpha1.WorkspaceAnnotation],
			}
			if i.Lease.Spec.RenewTime != nil {
				info.LastSeen = stamp(i.Lease.Spec.RenewTime.Time)
			}
			out.Instances = append(out.Instances, info)
		}
	}
	return out, nil
}

// stamp gives a time as the tools do: RFC 3339 in UTC.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
