package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// formatName is what an archive calls itself.
	formatName = "agentrooms.dev/room"
	// formatVersion is the version that is written, and the only one that is read.
	formatVersion = 1

	formatEntry   = "format.json"
	indexEntry    = "index.json"
	roomEntry     = "room.json"
	agentsEntry   = "agents.jsonl"
	consentsEntry = "consents.jsonl"
	inboxesEntry  = "inboxes.jsonl"
	filesDir      = "files/"
	tasksDir      = "tasks/"
	movedDir      = "movedtasks/"
	messagesDir   = "messages/"
	contentDir    = "content/"

	// maxEntry bounds the entries that are read as a whole, all but contents: twice what 1,000 messages may have.
	maxEntry = 64 << 20
	// maxEntries bounds how many there are: a million contents, say.
	maxEntries = 1 << 20
	// maxListed bounds the lines of an entry that is alone in its kind.
	maxListed = 100_000
	// maxEpoch bounds the epoch of a task: an import writes a task as often as that.
	maxEpoch = 100_000
)

// ErrDamaged says that an archive is not what was written: it was cut off, or changed.
var ErrDamaged = errors.New("the archive is damaged")

// ErrFormat says that a file is no archive, or one of another version.
var ErrFormat = errors.New("this is no archive that can be read")

// header is the first entry.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// check refuses what this program cannot read.
func (h header) check() error {
	switch {
	case h.Format != formatName:
		return fmt.Errorf("%w: it does not begin as an archive of a room does", ErrFormat)
	case h.Version != formatVersion:
		return fmt.Errorf("%w: it has version %d of the format, and this program reads version %d: use the program that wrote it, or a newer one",
			ErrFormat, h.Version, formatVersion)
	}
	return nil
}

// Counts says how much there is of each kind.
type Counts struct {
	Agents   int64 `json:"agents"`
	Consents int64 `json:"consents"`
	Tasks    int64 `json:"tasks"`
	// Moved tasks are archived ones that stood in the blob store. They go there again.
	Moved    int64 `json:"moved"`
	Inboxes  int64 `json:"inboxes"`
	Files    int64 `json:"files"`
	Versions int64 `json:"versions"`
	Contents int64 `json:"contents"`
	// Bytes of the contents.
	Bytes    int64 `json:"bytes"`
	Messages int64 `json:"messages"`
}

// entry is an entry as the index has it.
type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Index is the last entry of an archive: what the others are.
type Index struct {
	// Room is the name of the room.
	Room string `json:"room"`
	// ID is its id.
	ID string `json:"id"`
	// Archived is the seq up to which its messages stood in the blob store. They go there again.
	Archived int64 `json:"archived"`
	// Counts of what there is.
	Counts Counts `json:"counts"`
	// Entries in their order, all but the index.
	Entries []entry `json:"entries"`

	digest string
}

// Digest names the archive: it is the SHA-256 of the index, and so of everything. Archives of the same state have the same.
func (i *Index) Digest() string { return i.digest }

// encodeIndex gives the index as it stands in the archive.
func encodeIndex(i *Index) ([]byte, error) {
	raw, err := json.MarshalIndent(i, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encoding the index: %w", err)
	}
	raw = append(raw, '\n')
	i.digest = sum(raw)
	return raw, nil
}

func decodeIndex(raw []byte) (*Index, error) {
	i := &Index{}
	if err := json.Unmarshal(raw, i); err != nil {
		return nil, fmt.Errorf("%w: its index cannot be read: %w", ErrDamaged, err)
	}
	if i.Archived < 0 || i.Archived%chunkLines != 0 || i.Archived > i.Counts.Messages {
		return nil, fmt.Errorf("%w: %d of its %d messages cannot have been in the blob store", ErrDamaged, i.Archived, i.Counts.Messages)
	}
	i.digest = sum(raw)
	return i, nil
}

func sum(raw []byte) string {
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

// chunkName gives the name of the n-th entry of lines in a folder, from 1 on.
func chunkName(dir string, n int64) string { return fmt.Sprintf("%s%013d.jsonl", dir, n) }

// contentHash gives the hash that the name of a content is, and false for another entry.
func contentHash(name string) (string, bool) { return strings.CutPrefix(name, contentDir) }
