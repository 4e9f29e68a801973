package mcpbridge

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	// maxDepth bounds how deep a message may nest, and each argument of a tool by itself.
	maxDepth = 64
	// maxIDLength bounds the id of a request, which every answer repeats.
	maxIDLength = 256
	// maxNameLength bounds the name of a tool, which errors repeat.
	maxNameLength = 128
	// maxURILength bounds the URI of a resource, which errors repeat.
	maxURILength = 2048
)

// innerNames are the members of params that are taken out of the body, by method.
var innerNames = map[string]string{"tools/call": "arguments", "subscriptions/listen": "notifications"}

// message is a JSON-RPC message as the bridge reads it: from the raw bytes, because decoding would repair what has to be
// refused (doubled fields, broken UTF-8) and pay for what has to be bounded (depth).
type message struct {
	// id as it came. Nil in a notification or an answer without one.
	id json.RawMessage
	// method, empty in an answer.
	method string
	// name of the tool in tools/call.
	name string
	// uri of the resource in resources/read.
	uri string
	// meta is params._meta, as it came.
	meta json.RawMessage
	// inner is params.arguments of tools/call or params.notifications of subscriptions/listen, as it came.
	inner json.RawMessage
	// refused says why inner is not even parsed. It names the field.
	refused *problem.Problem
	// body is what mcp-go gets to read: the message with an empty object in place of inner.
	body []byte
	// modern is true when the message belongs to the era without handshake.
	modern bool
}

// notification says whether nobody waits for an answer.
func (m *message) notification() bool { return m.id == nil && m.method != "" }

// rpcError is an error of the protocol, as opposed to one of a tool.
type rpcError struct {
	id      json.RawMessage
	code    int
	message string
	data    any
	// status of HTTP when it is not the one that belongs to the code.
	status int
}

func invalidRequest(m *message, text string) *rpcError {
	return &rpcError{id: m.id, code: mcp.INVALID_REQUEST, message: text, status: 400}
}

// parseMessage reads a message. version is the header that states the protocol version.
func parseMessage(body []byte, version string) (*message, *rpcError) {
	m := &message{body: body}
	params, err := m.readTop(body)
	if err != nil {
		return nil, err
	}
	switch {
	case params.value == nil, string(params.value) == "null":
	case isObject(params.value):
		if err := m.readParams(body, params); err != nil {
			return nil, err
		}
	case json.Valid(body):
		return nil, &rpcError{id: m.id, code: mcp.INVALID_PARAMS, message: "params must be an object", status: 400}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.modern = m.modern || mcp.IsModernProtocol(version)
	return m, nil
}

// readTop reads the outermost members and gives the one called params.
func (m *message) readTop(body []byte) (params member, rpcErr *rpcError) {
	if !isObject(body) {
		return member{}, m.notOne(body)
	}
	var method, id json.RawMessage
	seen := fields{known: []string{"jsonrpc", "id", "method", "params", "result", "error"}}
	err := members(body, func(f member) error {
		switch f.name {
		case "id":
			id = f.value
		case "method":
			method = f.value
		case "params":
			params = f
		}
		return seen.add(f.name)
	})
	if rpcErr := m.readID(id); rpcErr != nil && err == nil {
		return member{}, rpcErr
	}
	if err != nil {
		return member{}, m.refuse(err)
	}
	if method != nil {
		if json.Unmarshal(method, &m.method) != nil || m.method == "" {
			return member{}, invalidRequest(m, "method must be a string and not empty")
		}
	}
	if len(m.method) > maxNameLength {
		return member{}, invalidRequest(m, "method may have at most "+strconv.Itoa(maxNameLength)+" bytes")
	}
	return params, nil
}

// notOne answers what is no JSON object.
func (m *message) notOne(body []byte) *rpcError {
	s := &scanner{data: body}
	if s.take('[') {
		return invalidRequest(m, "batches are not supported: send one message a request")
	}
	return &rpcError{code: mcp.PARSE_ERROR, message: "the body must be one JSON-RPC message, a JSON object", status: 400}
}

// refuse gives the protocol's error for what the walk over an object found.
func (m *message) refuse(err error) *rpcError {
	if doubled, ok := err.(doubledError); ok { //nolint:errorlint // it comes straight from fields.add
		return invalidRequest(m, string(doubled))
	}
	return &rpcError{id: m.id, code: mcp.PARSE_ERROR, message: "the body is not well-formed JSON", status: 400}
}

// readID takes an id that an answer can repeat unchanged: a string, or an integer that JSON numbers hold exactly.
func (m *message) readID(raw json.RawMessage) *rpcError {
	if raw == nil {
		return nil
	}
	const text = "id must be a string or an integer"
	if len(raw) > maxIDLength {
		return invalidRequest(m, "id may have at most "+strconv.Itoa(maxIDLength)+" bytes")
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return invalidRequest(m, text)
	}
	switch v := value.(type) {
	case string:
		if !utf8.Valid(raw) {
			return invalidRequest(m, "id must be UTF-8")
		}
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53-1 {
			return invalidRequest(m, text+" of at most 53 bits")
		}
	default:
		return invalidRequest(m, text)
	}
	m.id = raw
	return nil
}

// readParams finds the parts of params that the bridge itself needs, and takes inner out of the body.
func (m *message) readParams(body []byte, params member) *rpcError {
	innerName := innerNames[m.method]
	seen := fields{known: []string{"_meta", "name", "uri", "arguments", "notifications"}}
	var inner member
	err := members(params.value, func(f member) error {
		switch {
		case f.name == "_meta":
			m.meta, m.modern = f.value, mcp.IsModernProtocol(metaVersion(f.value))
		case f.name == "name":
			_ = json.Unmarshal(f.value, &m.name) // what is no string is for mcp-go to refuse
		case f.name == "uri":
			_ = json.Unmarshal(f.value, &m.uri)
		case innerName != "" && f.name == innerName:
			inner = f
		}
		return seen.add(f.name)
	})
	switch {
	case err != nil:
		return m.refuse(err)
	case len(m.name) > maxNameLength:
		return m.tooLong("params.name", maxNameLength)
	case len(m.uri) > maxURILength:
		return m.tooLong("params.uri", maxURILength)
	case inner.value == nil:
		return nil
	}
	m.inner = inner.value
	start := params.start + inner.start
	m.body = slices.Concat(body[:start], []byte("{}"), body[start+len(inner.value):])
	return nil
}

func (m *message) tooLong(what string, limit int) *rpcError {
	return &rpcError{
		id: m.id, code: mcp.INVALID_PARAMS, status: 400, message: what + " may have at most " + strconv.Itoa(limit) + " bytes",
	}
}

// check judges what the walk left open. The arguments of a tool have their own errors, which name the field.
func (m *message) check() *rpcError {
	if _, depth, ok := (&scanner{data: m.body}).value(); ok && depth > maxDepth {
		return invalidRequest(m, "the message nests more than "+strconv.Itoa(maxDepth)+" levels deep")
	}
	if !json.Valid(m.body) {
		return m.refuse(errMalformed)
	}
	if !utf8.Valid(m.body) {
		return &rpcError{id: m.id, code: mcp.PARSE_ERROR, message: "the body must be UTF-8", status: 400}
	}
	if m.inner == nil {
		return nil
	}
	if m.refused = tooDeep(m.inner); m.refused == nil && !json.Valid(m.inner) {
		return m.refuse(errMalformed)
	}
	return nil
}

// tooDeep names the argument that nests too deep.
func tooDeep(arguments []byte) *problem.Problem {
	_, depth, _ := (&scanner{data: arguments}).value()
	if depth <= maxDepth {
		return nil
	}
	field := "arguments"
	_ = members(arguments, func(f member) error {
		if f.depth >= maxDepth {
			field = short(f.name)
			return errMalformed
		}
		return nil
	})
	return problem.Invalid(field, "nests more than %d levels deep", maxDepth)
}

// metaVersion reads the protocol version that a request of the modern era states in its _meta.
func metaVersion(meta []byte) (version string) {
	if !isObject(meta) {
		return ""
	}
	_ = members(meta, func(f member) error {
		if f.name == mcp.MetaKeyProtocolVersion {
			_ = json.Unmarshal(f.value, &version)
		}
		return nil
	})
	return version
}

// doubledError is the text for a member that another reader could understand in another way.
type doubledError string

func (e doubledError) Error() string { return string(e) }

// fields refuses members that come twice, and those that differ from a known one by case only: decoders disagree on which
// of them counts, so what was checked might not be what is used.
type fields struct {
	known []string
	seen  []string
}

func (f *fields) add(name string) error {
	for _, known := range f.known {
		if !strings.EqualFold(known, name) {
			continue
		}
		if known != name {
			return doubledError(strconv.Quote(short(name)) + " must be written " + strconv.Quote(known))
		}
		if slices.Contains(f.seen, name) {
			return doubledError(strconv.Quote(name) + " may be given only once")
		}
		f.seen = append(f.seen, name)
	}
	return nil
}

// short bounds what of a caller's own words goes into an answer or a log.
func short(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
