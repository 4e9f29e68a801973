package mcpbridge

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSplicePutsTheAnswerInBothPlaces(t *testing.T) {
	for _, raw := range []string{
		`{"a":"plain"}`,
		`{"a":"a \"quoted\" word, a \\ and a \u0001, a tab\t and ünïcode  <b>&"}`,
		"{\n\t\"a\": \"pretty\"\r\n}",
	} {
		s := newSplice(json.RawMessage(raw))
		response := `{"id":1,"result":{"content":[{"type":"text","text":"` + s.text + `"}],"structuredContent":"` + s.structured + `"}}` + "\n"
		out, ok := s.apply([]byte(response))
		if !ok {
			t.Fatalf("%s was not put in", raw)
		}
		var got struct {
			Result struct {
				Content           []struct{ Text string }
				StructuredContent json.RawMessage
			}
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s gives %s: %v", raw, out, err)
		}
		if text := got.Result.Content[0].Text; text != raw {
			t.Errorf("the text is %q, want %q", text, raw)
		}
		if string(got.Result.StructuredContent) != raw {
			t.Errorf("the structured content is %s, want %s", got.Result.StructuredContent, raw)
		}
	}
}

func TestSpliceLeavesOtherResponsesAlone(t *testing.T) {
	s := newSplice(json.RawMessage(`{}`))
	for _, response := range []string{"", `{"error":{}}`, `{"text":"` + s.text + `"}`} {
		if out, ok := s.apply([]byte(response)); ok {
			t.Errorf("%s became %s", response, out)
		}
	}
}

func TestMarksCannotBeForeseen(t *testing.T) {
	a, b := newSplice(nil), newSplice(nil)
	if a.text == b.text || a.structured == b.structured || strings.Contains(a.structured, a.text) {
		t.Errorf("the marks are %q and %q, then %q", a.text, a.structured, b.text)
	}
}
