package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// mcp is a cheap client: JSON-RPC over kept-alive HTTP, with bodies encoded before the clock runs and answers looked at as
// bytes.
type mcp struct {
	http    *http.Client
	url     string
	headers http.Header
}

// transport is shared by all clients. Each has a connection of its own, as it has one call under way.
var transport = &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}

func newMCP(url, token string) *mcp {
	return &mcp{http: &http.Client{Transport: transport}, url: url, headers: http.Header{
		"Authorization": {"Bearer " + token},
		"Content-Type":  {"application/json"},
		"Accept":        {"application/json, text/event-stream"},
	}}
}

// toolCall encodes a call of a tool.
func toolCall(tool string, args map[string]any) []byte {
	body, _ := json.Marshal(map[string]any{ // strings and numbers only
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args},
	})
	return body
}

// post sends a body and gives the answer.
func (m *mcp) post(ctx context.Context, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	r.Header = m.headers
	resp, err := m.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("calling: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer []byte
	if resp.ContentLength > 0 {
		answer = make([]byte, resp.ContentLength)
		_, err = io.ReadFull(resp.Body, answer)
	} else {
		answer, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s: %s", resp.Status, answer)
	}
	return answer, nil
}

// must sends a body and holds the answer against what it must contain.
func (m *mcp) must(ctx context.Context, body []byte, want string) error {
	answer, err := m.post(ctx, body)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(want)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("unexpected answer to %s: %s", body, answer)
	}
	return nil
}

// get calls a tool and reads its result.
func (m *mcp) get(ctx context.Context, tool string, args map[string]any, into any) error {
	answer, err := m.post(ctx, toolCall(tool, args))
	if err != nil {
		return err
	}
	var envelope struct {
		Result struct {
			IsError           bool            `json:"isError"`
			StructuredContent json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("reading %s: %w", answer, err)
	}
	if envelope.Result.IsError || envelope.Result.StructuredContent == nil {
		return fmt.Errorf("%s: %s", tool, answer)
	}
	if err := json.Unmarshal(envelope.Result.StructuredContent, into); err != nil {
		return fmt.Errorf("reading %s: %w", strings.TrimSpace(string(answer)), err)
	}
	return nil
}
