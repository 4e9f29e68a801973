package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// ParamType is the JSON type of a parameter.
type ParamType string

// The types of parameters.
const (
	TypeString  ParamType = "string"
	TypeInteger ParamType = "integer"
	TypeBoolean ParamType = "boolean"
	TypeStrings ParamType = "string[]"
	TypeObject  ParamType = "object"
)

// Param is a parameter of a tool. The schema that the tool shows and the check of what comes in are both made from it.
type Param struct {
	// Name of the parameter.
	Name string
	// Type of its value.
	Type ParamType
	// Required is true when it must be given, and as a string not empty.
	Required bool
	// Nullable is true when null counts as not given.
	Nullable bool
	// Description for the agent. Empty where the name says it all.
	Description string
	// Enum lists the values allowed.
	Enum []string
	// Max bounds the characters of a string (each, in a list), and the value of an integer. Zero stands for MaxString. An
	// integer with neither Min nor Max has no bound.
	Max int64
	// Min bounds an integer's value from below, or the characters of a string.
	Min int64
	// Raw is true when a string is content: it may be empty and hold any character.
	Raw bool
	// Fields are the members of an object. None of them holds further members.
	Fields []Param
	// MaxItems bounds a list. Zero stands for 100.
	MaxItems int
}

// Bounds of parameters that state none.
const (
	// MaxString characters of a string.
	MaxString = 512
	// maxItems of a list.
	maxItems = 100
)

// Hints are the parameters by which an instance says which one it is.
var Hints = []Param{
	{Name: "workspace", Type: TypeString, Max: 256},
	{Name: "host", Type: TypeString, Max: 256},
	{Name: "session_id", Type: TypeString, Max: 64},
}

// AllParams gives the tool's parameters and, where it takes them, the session hints.
func (t *Tool) AllParams() []Param {
	if !t.Hints {
		return t.Params
	}
	return append(slices.Clone(t.Params), Hints...)
}

// InputSchema gives the JSON schema of the tool's parameters.
func (t *Tool) InputSchema() map[string]any {
	return objectSchema(t.AllParams())
}

func objectSchema(members []Param) map[string]any {
	props, required := map[string]any{}, []string{}
	for _, p := range members {
		props[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (p Param) schema() map[string]any {
	s := map[string]any{"type": string(p.Type)}
	switch p.Type {
	case TypeStrings:
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
	case TypeInteger:
		if p.bounded() {
			s["minimum"] = p.Min
		}
		if p.bounded() && p.max() != maxInteger {
			s["maximum"] = p.max()
		}
	case TypeString:
		if p.Max > MaxString {
			s["maxLength"] = p.Max
		}
	case TypeObject:
		s = objectSchema(p.Fields)
	case TypeBoolean:
	}
	if p.Nullable {
		s["type"] = []string{s["type"].(string), "null"}
	}
	if len(p.Enum) > 0 {
		s["enum"] = p.enum()
	}
	if p.Description != "" {
		s["description"] = p.Description
	}
	return s
}

// enum lists the values for the schema, null among them where it may be given.
func (p Param) enum() []any {
	values := make([]any, 0, len(p.Enum)+1)
	for _, v := range p.Enum {
		values = append(values, v)
	}
	if p.Nullable {
		values = append(values, nil)
	}
	return values
}

// bounded says whether an integer has bounds.
func (p Param) bounded() bool { return p.Min != 0 || p.Max != 0 }

// maxInteger is the largest integer that every JSON library reads as what it is.
const maxInteger = 1<<53 - 1

// max gives the largest value of an integer.
func (p Param) max() int64 {
	if p.Max == 0 && p.Min > 0 {
		return maxInteger
	}
	return p.Max
}

// Args are the checked arguments of a call.
type Args struct {
	values map[string]any
}

// Has says whether an argument was given.
func (a Args) Has(name string) bool {
	_, ok := a.values[name]
	return ok
}

// String gives a string argument, empty when it was not given.
func (a Args) String(name string) string {
	s, _ := a.values[name].(string)
	return s
}

// Int gives an integer argument, or the default when it was not given.
func (a Args) Int(name string, def int64) int64 {
	if n, ok := a.values[name].(int64); ok {
		return n
	}
	return def
}

// IntPtr gives an integer argument, nil when it was not given.
func (a Args) IntPtr(name string) *int64 {
	if n, ok := a.values[name].(int64); ok {
		return &n
	}
	return nil
}

// Bool gives a boolean argument, false when it was not given.
func (a Args) Bool(name string) bool {
	b, _ := a.values[name].(bool)
	return b
}

// Object gives the members of an object argument. They are those of nothing when it was not given.
func (a Args) Object(name string) Args {
	o, _ := a.values[name].(Args)
	return o
}

// Strings gives a list argument, nil when it was not given.
func (a Args) Strings(name string) []string {
	l, _ := a.values[name].([]string)
	return l
}

// ParseArgs checks the raw arguments of a call: one JSON object with known fields only, each of its type and within its
// bounds, in UTF-8. What is wrong comes back as a VALIDATION problem that names the field.
func (t *Tool) ParseArgs(raw json.RawMessage) (Args, *problem.Problem) {
	fields, p := object(raw)
	if p != nil {
		return Args{}, p
	}
	return parseFields(fields, t.AllParams())
}

func parseFields(fields map[string]json.RawMessage, params []Param) (Args, *problem.Problem) {
	args := Args{values: make(map[string]any, len(fields))}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // so that the same call gets the same answer
		value := fields[name]
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return Args{}, unknown(name, params)
		}
		v, p := params[i].parse(value)
		if p != nil {
			return Args{}, p
		}
		if v != nil {
			args.values[name] = v
		}
	}
	for _, p := range params {
		if p.Required && !args.Has(p.Name) {
			return Args{}, problem.Invalid(p.Name, "must be given")
		}
	}
	return args, nil
}

// object reads the outermost level only, so that what is nested costs nothing. Doubled fields are refused.
func object(raw json.RawMessage) (map[string]json.RawMessage, *problem.Problem) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, problem.Invalid("arguments", "must be a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return nil, problem.Invalid("arguments", "must be well-formed JSON")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, problem.Invalid(clip(name), "must be well-formed JSON")
		}
		if _, twice := fields[name]; twice {
			return nil, problem.Invalid(clip(name), "may be given only once")
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, problem.Invalid("arguments", "must be well-formed JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, problem.Invalid("arguments", "must be one JSON object and nothing behind it")
	}
	return fields, nil
}

// clip bounds what of a caller's own words goes into an error.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

func unknown(name string, params []Param) *problem.Problem {
	known := make([]string, 0, len(params))
	for _, p := range params {
		known = append(known, p.Name)
	}
	return problem.Invalid(clip(name), "is not a parameter of this tool").
		WithHint("its parameters are: %s", strings.Join(known, ", "))
}

// parse checks one value. It gives nil for null where that is allowed.
func (p Param) parse(raw json.RawMessage) (any, *problem.Problem) {
	if !utf8.Valid(raw) {
		return nil, problem.Invalid(p.Name, "must be UTF-8")
	}
	if bytes.Equal(raw, []byte("null")) {
		if p.Nullable || !p.Required {
			return nil, nil
		}
		return nil, problem.Invalid(p.Name, "must be given and not null")
	}
	switch p.Type {
	case TypeInteger:
		return p.parseInteger(raw)
	case TypeBoolean:
		var b bool
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, problem.Invalid(p.Name, "must be true or false")
		}
		return b, nil
	case TypeStrings:
		return p.parseStrings(raw)
	case TypeObject:
		return p.parseObject(raw)
	default:
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, problem.Invalid(p.Name, "must be a string")
		}
		if p.Raw && strings.Count(s, string(utf8.RuneError)) != replacements(raw) {
			return nil, problem.Invalid(p.Name, "holds half of a surrogate pair, which is no character: send it as base64")
		}
		return s, p.checkString(s)
	}
}

// parseObject checks the members of an object. A problem names the member by its path.
func (p Param) parseObject(raw json.RawMessage) (any, *problem.Problem) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, problem.Invalid(p.Name, "must be a JSON object")
	}
	fields, prob := object(raw)
	if prob != nil {
		return nil, problem.Invalid(p.Name, "is wrong: %s", prob.Message)
	}
	args, prob := parseFields(fields, p.Fields)
	if prob != nil {
		inner := problem.Invalid(p.Name, "is wrong: %s", prob.Message)
		inner.Hint = prob.Hint
		return nil, inner
	}
	return args, nil
}

// replacements counts how often a JSON string says U+FFFD itself: the decoder puts it for broken surrogates, too.
func replacements(raw []byte) int {
	n := bytes.Count(raw, []byte(string(utf8.RuneError)))
	for i := 0; i+5 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] == 'u' && strings.EqualFold(string(raw[i+2:i+6]), "fffd") {
			n++
		}
		i++
	}
	return n
}

// parseInteger reads a whole number however it is written (7, 7.0, 7e0). Whatever is wrong, the answer gives the range.
func (p Param) parseInteger(raw json.RawMessage) (any, *problem.Problem) {
	low, high := int64(-maxInteger), int64(maxInteger)
	if p.bounded() {
		low, high = p.Min, p.max()
	}
	wrong := problem.Invalid(p.Name, "must be an integer from %d to %d", low, high)
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || math.Abs(f) > maxInteger {
		return nil, wrong
	}
	if n := int64(f); low <= n && n <= high {
		return n, nil
	}
	return nil, wrong
}

func (p Param) parseStrings(raw json.RawMessage) (any, *problem.Problem) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, problem.Invalid(p.Name, "must be a list of strings")
	}
	limit := p.MaxItems
	if limit == 0 {
		limit = maxItems
	}
	if len(items) > limit {
		return nil, problem.Invalid(p.Name, "may hold at most %d items", limit)
	}
	list := make([]string, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &list[i]); err != nil || bytes.Equal(item, []byte("null")) {
			return nil, problem.Invalid(p.Name, "must be a list of strings")
		}
		if list[i] == "" {
			return nil, problem.Invalid(p.Name, "may hold no empty string")
		}
		if prob := p.checkString(list[i]); prob != nil {
			return nil, prob
		}
	}
	return list, nil
}

func (p Param) checkString(s string) *problem.Problem {
	limit := p.Max
	if limit == 0 {
		limit = MaxString
	}
	n := int64(utf8.RuneCountInString(s))
	switch {
	case n == 0 && p.Required && p.Type == TypeString && !p.Raw:
		return problem.Invalid(p.Name, "may not be empty")
	case n < p.Min:
		return problem.Invalid(p.Name, "must have at least %d characters", p.Min)
	case n > limit:
		return problem.Invalid(p.Name, "has %d characters, at most %d are allowed", n, limit)
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, s):
		return problem.Invalid(p.Name, "must be one of %s", strings.Join(p.Enum, ", "))
	}
	if p.Raw {
		return nil
	}
	return problem.CheckText(p.Name, s)
}
