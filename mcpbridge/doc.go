// Package mcpbridge serves toolsets to agents over MCP. It is everything between HTTP and a toolset.Toolset: who calls,
// what they may, how much, in which form the answer goes out, and the streams on which changes are announced.
//
// A request passes, in this order: the origin check (403), the bearer token (401, or 503 while the API server is away),
// the method (405), the size of its body (413), the form of its message (400), the agent's share of the bridge (429), and
// then mcp-go, which speaks both eras of the protocol. subscriptions/listen is answered by a stream of our own.
//
// A tool call passes: identity, scope, arguments, rate limit, handler. What goes wrong there is a tool result with
// isError and the error envelope, so that the agent gets to read it.
//
// The list of tools is the same for every caller, whatever the scopes: clients put it in front of their prompts, and a
// list that never changes keeps their prompt caches warm. A missing scope is answered when the tool is called, and the
// answer says what to do about it.
package mcpbridge
