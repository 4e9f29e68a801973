package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errMalformed says that bytes are no JSON.
var errMalformed = errors.New("malformed JSON")

// scanner walks over JSON without decoding it. It finds where values begin and end and how deep they nest, in constant
// memory. It does not judge the inside of a value: json.Valid does, once the depth is known to be bounded.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// take steps over a byte, or says that another one is there.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// text steps over a string.
func (s *scanner) text() bool {
	if !s.take('"') {
		return false
	}
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '\\':
			s.pos += 2
		case '"':
			s.pos++
			return true
		default:
			s.pos++
		}
	}
	return false
}

// value steps over a value and gives its bounds and the depth of its nesting: 0 for what is neither object nor list.
func (s *scanner) value() (raw []byte, depth int, ok bool) {
	s.space()
	start, open := s.pos, 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '{', '[':
			open++
			depth = max(depth, open)
			s.pos++
		case '}', ']':
			if open == 0 {
				return s.data[start:s.pos], depth, s.pos > start
			}
			open--
			s.pos++
		case '"':
			if !s.text() {
				return nil, depth, false
			}
		case ',', ':':
			if open == 0 {
				return s.data[start:s.pos], depth, s.pos > start
			}
			s.pos++
		case ' ', '\t', '\r', '\n':
			if open == 0 {
				return s.data[start:s.pos], depth, s.pos > start
			}
			s.pos++
		default:
			s.pos++
		}
		if open == 0 && closes(s.data[s.pos-1]) {
			return s.data[start:s.pos], depth, true
		}
	}
	return s.data[start:s.pos], depth, open == 0 && s.pos > start
}

func closes(c byte) bool { return c == '}' || c == ']' || c == '"' }

// member is a member of an object: its decoded name, its value, and where in the object the value begins.
type member struct {
	name  string
	value []byte
	start int
	depth int
}

// members visits what an object holds, in order, until the visitor gives an error.
func members(object []byte, visit func(member) error) error {
	s := &scanner{data: object}
	if !s.take('{') {
		return errMalformed
	}
	if s.take('}') {
		return s.end()
	}
	for {
		m, err := s.member()
		if err != nil {
			return err
		}
		if err := visit(m); err != nil {
			return err
		}
		if s.take('}') {
			return s.end()
		}
		if !s.take(',') {
			return errMalformed
		}
	}
}

func (s *scanner) member() (member, error) {
	s.space()
	start := s.pos
	if !s.text() {
		return member{}, errMalformed
	}
	name, err := unquote(s.data[start:s.pos])
	if err != nil || !s.take(':') {
		return member{}, errMalformed
	}
	s.space()
	m := member{name: name, start: s.pos}
	var ok bool
	if m.value, m.depth, ok = s.value(); !ok {
		return member{}, errMalformed
	}
	return m, nil
}

// end says whether nothing follows.
func (s *scanner) end() error {
	if s.space(); s.pos != len(s.data) {
		return errMalformed
	}
	return nil
}

func unquote(quoted []byte) (string, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", errMalformed
	}
	return s, nil
}

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}
