package mcpbridge

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// spliceFrom is how large an answer must be to pass by mcp-go. It would be encoded once as text, and checked and copied
// several times on its way through the layers of a response.
const spliceFrom = 2 << 10

// splice holds an encoded answer back while mcp-go makes the response around it. In its places stand marks that nobody can
// foresee.
type splice struct {
	raw json.RawMessage
	// text and structured are the marks.
	text, structured string
}

func newSplice(raw json.RawMessage) *splice {
	mark := incident()
	return &splice{raw: raw, text: "text-" + mark, structured: "structured-" + mark}
}

// apply puts the answer in the places of its marks, as JSON text and as what it is. It gives false for a response that does
// not have them.
func (s *splice) apply(response []byte) ([]byte, bool) {
	text, structured := []byte(strconv.Quote(s.text)), []byte(strconv.Quote(s.structured))
	if !bytes.Contains(response, text) || !bytes.Contains(response, structured) {
		return nil, false
	}
	out := make([]byte, 0, len(response)+2*len(s.raw)+len(s.raw)/4)
	for len(response) > 0 {
		i, j := bytes.Index(response, text), bytes.Index(response, structured)
		switch {
		case i >= 0 && (j < 0 || i < j):
			out = appendQuoted(append(out, response[:i]...), s.raw)
			response = response[i+len(text):]
		case j >= 0:
			out = append(append(out, response[:j]...), s.raw...)
			response = response[j+len(structured):]
		default:
			return append(out, response...), true
		}
	}
	return out, true
}

// appendQuoted appends JSON as a string of JSON. Encoders have escaped what is inside its strings, so that quotes,
// backslashes and the blanks between its tokens are all there is to escape.
func appendQuoted(out, raw []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i, c := range raw {
		switch {
		case c == '"' || c == '\\':
			out = append(append(out, raw[start:i]...), '\\')
			start = i
		case c < ' ':
			out = append(append(out, raw[start:i]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			start = i + 1
		}
	}
	return append(append(out, raw[start:]...), '"')
}

// handleCall has mcp-go answer a tool call, and puts a large answer in its place.
func (e *endpoint) handleCall(w *response, r *http.Request, q *request) {
	answer := newCapture()
	e.handle(answer, r, q.msg.body)
	if q.splice != nil {
		if body, ok := q.splice.apply(answer.body); ok {
			answer.body = body
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
	answer.replay(w)
}
