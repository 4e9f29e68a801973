// Package board serves the pages for people: rooms with their messages and tasks, what waits for a decision, agents, and
// what a person may do about them.
//
// What is shown comes from the replica's view of the cluster, as far as the person's RBAC lets them read it. What a person
// does is written through the API server with the person's own rights. Pages stay live by server-sent events: each stream
// knows what its page shows and sends what differs, as HTML fragments that htmx swaps in.
package board
