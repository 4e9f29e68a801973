package board

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// rules are what a person may do in a namespace, as the API server lists it.
type rules struct {
	list []authorizationv1.ResourceRule
	// ask answers what the list leaves open, nil when it is complete.
	ask func(verb, resource, name string) bool
}

// rulesIn gives what a person may do in a namespace, from what was learnt a moment ago or by asking. Those who wait for the
// same answer share it.
func (b *Board) rulesIn(ctx context.Context, p *person, namespace string) (*rules, error) {
	key := p.key + "/" + namespace
	if known, ok := b.rules.get(key, b.clock.Now()); ok {
		return known, nil
	}
	answer := b.flights.DoChan(key, func() (any, error) {
		asked := b.clock.Now()
		found, err := b.askRules(context.WithoutCancel(ctx), p, namespace)
		if err == nil {
			b.rules.put(key, found, asked.Add(b.opts.RightsFor))
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the rights of %s: %w", p.name, ctx.Err())
	case r := <-answer:
		found, _ := r.Val.(*rules)
		return found, r.Err
	}
}

func (b *Board) askRules(ctx context.Context, p *person, namespace string) (*rules, error) {
	api, err := authorizationclient.NewForConfig(b.config(p))
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review, err = api.SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking what %s may do in %s: %w", p.name, namespace, err)
	}
	found := &rules{list: review.Status.ResourceRules}
	if review.Status.Incomplete {
		found.ask = b.asking(p, api, namespace) //nolint:contextcheck // it is asked long after this call
	}
	return found, nil
}

// asking answers single questions, for clusters in which another authorizer than RBAC has a say.
func (b *Board) asking(p *person, api authorizationclient.AuthorizationV1Interface, namespace string) func(verb, resource, name string) bool {
	return func(verb, resource, name string) bool {
		key := p.key + "/" + namespace + "/" + verb + "/" + resource + "/" + name
		if known, ok := b.answers.get(key, b.clock.Now()); ok {
			return known
		}
		ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
		defer cancel()
		asked := b.clock.Now()
		resource, sub, _ := strings.Cut(resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: resource, Subresource: sub, Name: name,
			},
		}}
		review, err := api.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false
		}
		b.answers.put(key, review.Status.Allowed, asked.Add(b.opts.RightsFor))
		return review.Status.Allowed
	}
}

// allow says whether the person may do something to a kind of Agent Rooms. An empty name stands for all of the kind.
func (r *rules) allow(verb, resource, name string) bool {
	if slices.ContainsFunc(r.list, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, verb) && has(rule.APIGroups, v1alpha1.GroupVersion.Group) && names(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || (name != "" && slices.Contains(rule.ResourceNames, name)))
	}) {
		return true
	}
	return r.ask != nil && r.ask(verb, resource, name)
}

// names says whether a rule's resources name one, which may have a part of it behind a slash.
func names(resources []string, resource string) bool {
	_, sub, part := strings.Cut(resource, "/")
	return has(resources, resource) || (part && slices.Contains(resources, "*/"+sub))
}

func has(list []string, s string) bool { return slices.Contains(list, "*") || slices.Contains(list, s) }

// rights are what a person may see and do in a room.
type rights struct {
	// Messages, Tasks, Agents and Consents may be read, Files listed, and their Contents read.
	Messages, Tasks, Agents, Consents, Files, Contents bool
	// Send messages, Create and Edit tasks, EditRoom, and Consent for themselves.
	Send, Create, Edit, EditRoom, Consent bool
}

// access is a room as a person sees it.
type access struct {
	person *person
	room   *v1alpha1.Room
	id     string
	may    rights
}

// accessTo gives a room to somebody who may see it, nil to everybody else.
func (b *Board) accessTo(ctx context.Context, p *person, room *v1alpha1.Room, id string) (*access, error) {
	r, err := b.rulesIn(ctx, p, room.Namespace)
	if err != nil || !r.allow("get", "rooms", room.Name) {
		return nil, err
	}
	// A paused room takes the writes of people. An archived one is kept for reading.
	open := room.Spec.State != v1alpha1.RoomArchived
	return &access{person: p, room: room, id: id, may: rights{
		Messages: r.allow("list", "messagebatches", ""), Tasks: r.allow("list", "tasks", ""),
		Agents: r.allow("list", "agents", ""), Consents: r.allow("list", "consents", ""),
		Files: r.allow("list", "files", ""), Contents: r.allow("get", "files/content", ""),
		Send:     open && r.allow("create", "messagebatches", ""),
		Create:   open && r.allow("create", "tasks", ""),
		Edit:     open && r.allow("update", "tasks", ""),
		EditRoom: r.allow("update", "rooms", room.Name),
		Consent:  r.allow("create", "consents", "") && r.allow("update", "consents", ""),
	}}, nil
}
