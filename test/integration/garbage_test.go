package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

type listedTool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	} `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

// rpc calls a method and reads its result.
func rpc(t *testing.T, token, body string) (int, json.RawMessage) {
	t.Helper()
	resp := post(t, token, nil, body)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, text, _ = strings.Cut(text, "data: ")
		text, _, _ = strings.Cut(text, "\n")
	}
	var envelope struct {
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal([]byte(text), &envelope)
	return resp.StatusCode, envelope.Result
}

func listTools(t *testing.T, token string) []listedTool {
	t.Helper()
	_, raw := rpc(t, token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	var list struct {
		Tools []listedTool `json:"tools"`
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Tools) == 0 {
		t.Fatalf("tools/list gives %s, %v", raw, err)
	}
	return list.Tools
}

// raw calls a tool with arguments as they stand and gives the error it answers, nil when it succeeded.
func raw(t *testing.T, token, tool, arguments string) *harness.Error {
	t.Helper()
	status, result := rpc(t, token, fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
	var out struct {
		IsError           bool `json:"isError"`
		StructuredContent struct {
			Error *harness.Error `json:"error"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &out); err != nil {
		t.Errorf("%s %.80s: HTTP %d, %s, %v", tool, arguments, status, result, err)
		return nil
	}
	if out.IsError != (out.StructuredContent.Error != nil) {
		t.Errorf("%s %.80s: isError is %t, the envelope %+v", tool, arguments, out.IsError, out.StructuredContent.Error)
	}
	return out.StructuredContent.Error
}

// TestBadInputToEveryToolIsNamedAndWritesNothing gives every parameter of every tool what it cannot be.
func TestBadInputToEveryToolIsNamedAndWritesNothing(t *testing.T) {
	w, room := team(t)
	token, boss := w.Tokens["boss"], w.As("boss", "b")
	task := newTask(t, boss, room, "untouched", "@worker")
	sent := send(t, boss, room, "untouched")
	before := taskObject(t, w, task.TaskID).ResourceVersion
	deep := strings.Repeat("[", 50) + strings.Repeat("]", 50)
	for _, tool := range listTools(t, token) {
		for name, property := range tool.InputSchema.Properties {
			kinds := map[string]string{
				"an object": `{"a":1}`, "nested deep": deep, "not UTF-8": "\"a\xffb\"", "a control character": `"a\u0000b"`,
				"a list of lists": `[[1]]`, "half a number": `1.5`, "huge": `"` + strings.Repeat("x", 20000) + `"`,
			}
			if list, ok := property.Type.([]any); property.Type == "string" || (ok && list[0] == "string") {
				kinds["a number"] = `7`
				kinds["true"] = `true`
			} else {
				kinds["a string"] = `"seven"`
			}
			if slices.Contains(tool.InputSchema.Required, name) {
				kinds["null"] = `null`
				kinds["empty"] = `""`
			}
			if name == "content" { // any text is content
				delete(kinds, "huge")
				delete(kinds, "a control character")
				delete(kinds, "empty")
			}
			for kind, value := range kinds {
				fields := []string{fmt.Sprintf("%q:%s", name, value)}
				for _, other := range []struct{ name, value string }{{"room", room}, {"task_id", task.TaskID}} {
					if _, has := tool.InputSchema.Properties[other.name]; has && other.name != name {
						fields = append(fields, fmt.Sprintf("%q:%q", other.name, other.value))
					}
				}
				e := raw(t, token, tool.Name, "{"+strings.Join(fields, ",")+"}")
				if e == nil || e.Code != "VALIDATION" || !slices.Contains(e.Fields, name) {
					t.Errorf("%s with %s that is %s gives %+v, want VALIDATION naming it", tool.Name, name, kind, e)
				}
			}
		}
		for _, bad := range []string{`{"surprise":1}`, `{"session_id":"a","session_id":"b"}`, `[]`, `"x"`, `7`} {
			if e := raw(t, token, tool.Name, bad); e == nil || e.Code != "VALIDATION" || len(e.Fields) == 0 {
				t.Errorf("%s with the arguments %s gives %+v, want VALIDATION naming a field", tool.Name, bad, e)
			}
		}
	}
	if after := taskObject(t, w, task.TaskID); after.Status.State != "Todo" || after.Spec.Title != "untouched" || after.Generation != 1 {
		t.Errorf("the task was changed from %s to %+v", before, after)
	}
	page := harness.Get[rooms.Page](t, boss, "read_room", harness.Args{"room": room, "limit": 100})
	for _, m := range page.Messages {
		if m.Seq > sent.Seq && m.Sender.Type == "agent" {
			t.Errorf("a message was written: %+v", m)
		}
	}
}

func TestAHugeBodyIsRefusedWithItsLimit(t *testing.T) {
	w, _ := team(t)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"x":"` + strings.Repeat("x", 3<<20) + `"}}}`
	resp := post(t, w.Tokens["boss"], nil, body)
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "TOO_LARGE") {
		t.Errorf("a body of 3 MiB gives %d %.200s", resp.StatusCode, text)
	}
}

// TestTheToolListIsCheap holds what every session pays before its first word.
func TestTheToolListIsCheap(t *testing.T) {
	w, _ := team(t)
	_, result := rpc(t, w.Tokens["boss"], `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	var list struct {
		Tools []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		t.Fatal(err)
	}
	if n := len(list.Tools); n != 30 {
		t.Errorf("%d tools are listed, want 29 and wait_for_mentions", n)
	}
	for _, tool := range list.Tools {
		if tool["outputSchema"] == nil || tool["annotations"] == nil {
			t.Errorf("%v lacks its output schema or annotations", tool["name"])
		}
		delete(tool, "outputSchema")
	}
	small, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	if len(small) > 20000 {
		t.Errorf("the list has %d bytes without output schemas, at most 20000 are allowed", len(small))
	}
	t.Logf("the list has %d bytes without output schemas and %d with them", len(small), len(result))
}
