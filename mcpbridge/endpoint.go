package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// listTTL is how long clients of the modern era may keep the list of tools: it only changes with the server's version.
const listTTL = 5 * time.Minute

// endpoint serves one toolset.
type endpoint struct {
	*Server

	set   toolset.Toolset
	tools map[string]*toolset.Tool
	// listed are the tools as clients see them, in the toolset's order.
	listed []mcp.Tool
	mcp    *server.StreamableHTTPServer
}

// templated is a toolset that can say which forms its resources' URIs have.
type templated interface {
	// Templates gives the forms as URI templates (RFC 6570).
	Templates() []toolset.Resource
}

func newEndpoint(s *Server, set toolset.Toolset) (*endpoint, error) {
	e := &endpoint{Server: s, set: set, tools: map[string]*toolset.Tool{}}
	m := server.NewMCPServer("agentrooms-"+set.Name(), s.opts.Version,
		server.WithTitle("Agent Rooms: "+set.Name()),
		server.WithInstructions(set.Instructions()),
		server.WithToolCapabilities(false),
		server.WithResourceCapabilities(true, false),
		server.WithHooks(e.hooks()),
		server.WithCacheHints(0, mcp.CacheScopePrivate),
		server.WithMethodCacheHints(mcp.MethodToolsList, listTTL.Milliseconds(), mcp.CacheScopePublic),
		server.WithMethodCacheHints(mcp.MethodServerDiscover, listTTL.Milliseconds(), mcp.CacheScopePublic),
		server.WithMethodCacheHints(mcp.MethodResourcesTemplatesList, listTTL.Milliseconds(), mcp.CacheScopePublic),
	)
	tools := slices.Clone(set.Tools())
	for i := range tools {
		t := &tools[i]
		if e.tools[t.Name] != nil {
			return nil, fmt.Errorf("toolset %s: the tool %s is there twice", set.Name(), t.Name)
		}
		listed, err := describe(t)
		if err != nil {
			return nil, fmt.Errorf("toolset %s: describing the tool %s: %w", set.Name(), t.Name, err)
		}
		e.tools[t.Name] = t
		e.listed = append(e.listed, listed)
		m.AddTool(listed, e.toolHandler(t))
	}
	// One template that fits every URI leads to the toolset, which knows what each caller may read.
	m.AddResourceTemplate(mcp.NewResourceTemplate("{+uri}", "any"), e.readResource)
	e.mcp = server.NewStreamableHTTPServer(m,
		server.WithStateLess(true), server.WithDisableStreaming(true), server.WithStreamableHTTPLogger(s.log))
	return e, nil
}

// describe gives a tool as clients see it. What the protocol assumes anyway is left out: the list is paid for in every
// session.
func describe(t *toolset.Tool) (mcp.Tool, error) {
	input, err := json.Marshal(t.InputSchema())
	if err != nil {
		return mcp.Tool{}, fmt.Errorf("encoding the input schema: %w", err)
	}
	tool := mcp.Tool{Name: t.Name, Description: t.Description, RawInputSchema: input}
	if t.Output != nil {
		if tool.RawOutputSchema, err = json.Marshal(outputSchema(t.Output)); err != nil {
			return mcp.Tool{}, fmt.Errorf("encoding the output schema: %w", err)
		}
	}
	yes, no := true, false
	tool.Annotations.OpenWorldHint = &no
	switch {
	case t.ReadOnly:
		tool.Annotations.ReadOnlyHint = &yes
	case t.Destructive: // as the protocol assumes
	default:
		tool.Annotations.DestructiveHint = &no
	}
	if t.Idempotent && !t.ReadOnly {
		tool.Annotations.IdempotentHint = &yes
	}
	return tool, nil
}

// outputSchema makes room for the error envelope: clients hold an error's structured content against the schema as well.
func outputSchema(result map[string]any) map[string]any {
	schema := make(map[string]any, len(result)+2)
	maps.Copy(schema, result)
	if closed, ok := result["additionalProperties"].(bool); ok && !closed {
		properties := map[string]any{"error": map[string]any{"type": "object"}}
		if own, ok := result["properties"].(map[string]any); ok {
			maps.Copy(properties, own)
		}
		schema["properties"] = properties
	}
	if required, ok := result["required"]; ok {
		delete(schema, "required")
		schema["anyOf"] = []any{map[string]any{"required": required}, map[string]any{"required": []string{"error"}}}
	}
	return schema
}

// hooks make mcp-go's lists those of the toolset.
func (e *endpoint) hooks() *server.Hooks {
	hooks := &server.Hooks{}
	// Without sessions there is no resources/subscribe; the modern era's subscriptions/listen is announced by the same flag.
	hooks.AddAfterInitialize(func(_ context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		if r.Capabilities.Resources != nil {
			r.Capabilities.Resources.Subscribe = false
		}
	})
	hooks.AddAfterListTools(func(_ context.Context, _ any, q *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
		if q.Params.Cursor == "" {
			r.Tools = e.listed
		}
	})
	hooks.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, r *mcp.ListResourcesResult) {
		r.Resources = []mcp.Resource{}
		for _, res := range e.set.Resources(requestFrom(ctx).instance) {
			r.Resources = append(r.Resources, mcp.Resource{
				URI: res.URI, Name: res.Name, Description: res.Description, MIMEType: jsonType,
			})
		}
	})
	hooks.AddAfterListResourceTemplates(
		func(_ context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
			r.ResourceTemplates = e.templates()
		})
	return hooks
}

func (e *endpoint) templates() []mcp.ResourceTemplate {
	templates := []mcp.ResourceTemplate{}
	if set, ok := e.set.(templated); ok {
		for _, t := range set.Templates() {
			templates = append(templates, mcp.NewResourceTemplate(t.URI, t.Name,
				mcp.WithTemplateDescription(t.Description), mcp.WithTemplateMIMEType(jsonType)))
		}
	}
	return templates
}
