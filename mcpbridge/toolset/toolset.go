// Package toolset says what a set of tools is to the bridge: tools with parameters as data, handlers that know who calls,
// and resources that can be listened to. The bridge serves any number of toolsets; the rooms toolset is the first.
package toolset

import (
	"context"
	"slices"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Bucket is a rate limit that several tools share.
type Bucket string

// The buckets. Their sizes are the bridge's configuration.
const (
	BucketSend      Bucket = "send"
	BucketUpload    Bucket = "upload"
	BucketHeartbeat Bucket = "heartbeat"
	BucketWrite     Bucket = "write"
	BucketRead      Bucket = "read"
)

// Caller is the agent behind a call. It is made from the caller's token alone; the session hints only say which of the
// agent's instances is calling.
type Caller struct {
	// Agent as it stands in the bridge's view. It must not be changed.
	Agent *v1alpha1.Agent
	// Plate of the agent.
	Plate string
	// Session of the calling instance, never empty.
	Session string
	// Host and Workspace as the caller named them.
	Host, Workspace string
}

// Has says whether the agent has a scope.
func (c *Caller) Has(s v1alpha1.Scope) bool {
	return slices.Contains(c.Agent.Spec.Scopes, s)
}

// Tool is a tool of a toolset.
type Tool struct {
	// Name of the tool, unique within the toolset.
	Name string
	// Description for the agent, short: the list of tools is paid for in every session.
	Description string
	// Params are the parameters, without the session hints unless Hints is false.
	Params []Param
	// Hints is true when the tool takes the session hints workspace, host and session_id.
	Hints bool
	// Output is the JSON schema of the result, an object.
	Output map[string]any
	// Scope that the agent must have. Empty for none.
	Scope v1alpha1.Scope
	// Bucket that the call counts against.
	Bucket Bucket
	// ReadOnly, Destructive and Idempotent are the hints of the protocol's tool annotations.
	ReadOnly, Destructive, Idempotent bool
	// Handle runs the tool. The result must marshal to a JSON object. Errors that are no *problem.Problem are answered as
	// INTERNAL or UNAVAILABLE without their text.
	Handle func(ctx context.Context, c *Caller, a Args) (any, error)
}

// Toolset is a set of tools and the resources that go with them.
type Toolset interface {
	// Name of the toolset: the last part of its endpoint.
	Name() string
	// Instructions for the agent, given at discovery.
	Instructions() string
	// Tools in the order in which they are listed, always the same.
	Tools() []Tool
	// Identify finds the Agent that a Kubernetes username acts as. It gives a *problem.Problem with IDENTITY_REQUIRED when
	// there is none, or several. It costs no API call.
	Identify(username string) (*v1alpha1.Agent, string, error)
	// Touch notes that an instance showed a sign of life. It returns at once.
	Touch(c *Caller, wakeable bool)
	// Pending counts the agent's pending mentions over all rooms. It costs no API call.
	Pending(plate string) int
	// Listen subscribes to a resource, after checking that the caller may see it. Each value received says that the
	// resource may have changed; several changes may come as one. The subscription ends with the context. When the caller
	// loses the right to the resource the channel is closed.
	Listen(ctx context.Context, c *Caller, uri string) (<-chan struct{}, error)
	// Resources lists what the caller may read and listen to.
	Resources(c *Caller) []Resource
	// ReadResource gives the content of a resource as JSON.
	ReadResource(ctx context.Context, c *Caller, uri string) (any, error)
	// Await waits until the replica has seen what an earlier call, perhaps of another replica, wrote: the marks that its
	// handler noted with Wrote, by sort. It gives a *problem.Problem when the marks are none, or do not come in time.
	Await(ctx context.Context, marks map[string]string) error
	// Ready says whether the toolset's view of the cluster is complete.
	Ready() error
}

// Resource is something that can be read and listened to.
type Resource struct {
	// URI of the resource.
	URI string
	// Name and Description for people and agents.
	Name, Description string
}
