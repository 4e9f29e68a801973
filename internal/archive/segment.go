package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

const (
	// SegmentMessages is how many messages a segment holds, always.
	SegmentMessages = 1000
	// version of the format.
	version = 1
	// maxPlain bounds what a segment may have when it is not compressed: 64 MiB, twice what the schema lets it have.
	maxPlain = 64 << 20
	// maxPacked bounds what a segment may have in the blob store.
	maxPacked = maxPlain
)

// ErrCorrupt says that a segment is not what was written.
var ErrCorrupt = errors.New("the segment is damaged")

// FirstOf gives the first seq of the segment that a seq belongs to.
func FirstOf(seq int64) int64 { return (seq-1)/SegmentMessages*SegmentMessages + 1 }

// Key gives the name in the blob store of the segment that begins with a seq.
func Key(room types.UID, first int64) string {
	return fmt.Sprintf("rooms/%s/messages/%013d-%013d.jsonl.gz", room, first, first+SegmentMessages-1)
}

// Segment is 1,000 messages of a room's log.
type Segment struct {
	// Room is the UID of the room.
	Room types.UID
	// First is the seq of the first message.
	First int64
	// From and To are when the API server took the first and the last message.
	From, To time.Time
	// Messages in their order.
	Messages []v1alpha1.Message
	// Size is about how many bytes of memory the messages take.
	Size int64
}

// header is the first line of a segment.
type header struct {
	Version int       `json:"version"`
	Room    types.UID `json:"room"`
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// SHA256 of the lines after the first, not compressed.
	SHA256 string `json:"sha256"`
}

// line is a message as it stands in a segment.
type line struct {
	Seq int64 `json:"seq"`
	v1alpha1.Message
}

// Encode writes a segment. The same messages give the same lines.
func Encode(s *Segment) ([]byte, error) {
	if len(s.Messages) != SegmentMessages || FirstOf(s.First) != s.First || s.First < 1 {
		return nil, fmt.Errorf("%d messages from seq %d are no segment", len(s.Messages), s.First)
	}
	var plain bytes.Buffer
	lines := json.NewEncoder(&plain)
	for i := range s.Messages {
		if err := lines.Encode(line{Seq: s.First + int64(i), Message: s.Messages[i]}); err != nil {
			return nil, fmt.Errorf("encoding message %d: %w", s.First+int64(i), err)
		}
	}
	sum := sha256.Sum256(plain.Bytes())
	top, err := json.Marshal(header{
		Version: version, Room: s.Room, First: s.First, Last: s.First + SegmentMessages - 1,
		From: s.From.UTC(), To: s.To.UTC(), SHA256: hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the header of segment %d: %w", s.First, err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for _, part := range [][]byte{top, []byte("\n"), plain.Bytes()} {
		if _, err := z.Write(part); err != nil {
			return nil, fmt.Errorf("compressing segment %d: %w", s.First, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing segment %d: %w", s.First, err)
	}
	return packed.Bytes(), nil
}

// open checks a segment and gives its header and its lines.
func open(packed []byte, room types.UID, first int64) (header, []byte, error) {
	var h header
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlain+1))
	if err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	top, lines, found := bytes.Cut(plain, []byte("\n"))
	if len(plain) > maxPlain || !found {
		return h, nil, fmt.Errorf("%w: it has no header or is too long", ErrCorrupt)
	}
	if err := json.Unmarshal(top, &h); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	sum := sha256.Sum256(lines)
	if h.Version != version || h.Room != room || h.First != first || h.Last != first+SegmentMessages-1 ||
		h.SHA256 != hex.EncodeToString(sum[:]) {
		return h, nil, fmt.Errorf("%w: header %+v does not fit room %s, seq %d or the content", ErrCorrupt, h, room, first)
	}
	return h, lines, nil
}

// Decode reads a segment, and checks that it is the one that is asked for, whole and as it was written.
func Decode(packed []byte, room types.UID, first int64) (*Segment, error) {
	h, lines, err := open(packed, room, first)
	if err != nil {
		return nil, err
	}
	s := &Segment{
		Room: room, First: first, From: h.From, To: h.To, Messages: make([]v1alpha1.Message, 0, SegmentMessages),
		Size: int64(len(lines)) + SegmentMessages*256,
	}
	err = eachLine(lines, func(raw []byte) error {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if l.Seq != first+int64(len(s.Messages)) {
			return fmt.Errorf("%w: seq %d stands at place %d", ErrCorrupt, l.Seq, len(s.Messages))
		}
		s.Messages = append(s.Messages, l.Message)
		return nil
	})
	if err == nil && len(s.Messages) != SegmentMessages {
		err = fmt.Errorf("%w: it holds %d messages", ErrCorrupt, len(s.Messages))
	}
	return s, err
}

func eachLine(lines []byte, visit func([]byte) error) error {
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if err := visit(scanner.Bytes()); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// keyed is a message that was sent under a key.
type keyed struct {
	Seq int64  `json:"seq"`
	Key string `json:"key"`
}

// decodeKeys reads only what was sent under which key.
func decodeKeys(packed []byte, room types.UID, first int64) (header, []keyed, error) {
	h, lines, err := open(packed, room, first)
	if err != nil {
		return h, nil, err
	}
	var keys []keyed
	err = eachLine(lines, func(raw []byte) error {
		var k keyed
		if err := json.Unmarshal(raw, &k); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if k.Key != "" {
			keys = append(keys, k)
		}
		return nil
	})
	return h, keys, err
}
