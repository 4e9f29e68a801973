package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// JSON writes a value as JSON with nothing in it that a terminal would obey: such characters stand as escapes, and a program
// that reads it gets what was there.
func JSON(w io.Writer, v any, indent string) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return write(w, escaped(b.String(), jsonEscape))
}

// YAML writes a value as YAML in the same way. The value is one that JSON can hold.
func YAML(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	// JSON is YAML, but for the way it escapes.
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(escaped(string(raw), yamlEscape)), &node); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	style(&node)
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	return write(w, escaped(b.String(), yamlEscape))
}

// style has maps and lists written as blocks, and text between quotes only where it must: where it holds what is to be escaped,
// and where it would be read as something else.
func style(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && (Hidden(n.Value) || strings.ContainsAny(n.Value, "\t\r") || older(n.Value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		style(c)
	}
}

// maxOlder is how long a text may be that YAML 1.1, as kubectl reads it, takes for something else: yes, 1:20.
const maxOlder = 32

// older says whether YAML 1.1 reads a text as something else than text.
func older(s string) bool {
	if len(s) > maxOlder {
		return false
	}
	var v any
	err := sigsyaml.Unmarshal([]byte(s), &v)
	text, ok := v.(string)
	return err != nil || !ok || text != s
}

// escaped replaces hidden characters, which stand between double quotes only.
func escaped(s string, escape func(rune) string) string {
	if !Hidden(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && hidden(r) {
			b.WriteString(escape(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func jsonEscape(r rune) string {
	if hi, lo := utf16.EncodeRune(r); r > 0xffff {
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func yamlEscape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func write(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
