// Package ids derives the ids and names of Agent Rooms. All of them are pure functions of an object's metadata or of the
// request, so that an object has its id as soon as it exists and every replica finds the same name.
package ids

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// PlatePrefix begins every plate.
const PlatePrefix = "BRNL-AGT-"

var (
	crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)
	nameSafe  = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
)

// ID gives the ULID that tools call an object by: the annotation agentrooms.dev/id where a restore kept an old id, else the
// creation time and the first 80 bits of the UID. It is empty for an object that does not exist yet.
func ID(obj metav1.Object) string {
	if id := obj.GetAnnotations()[v1alpha1.IDAnnotation]; Valid(id) {
		return id
	}
	return NaturalID(obj)
}

// NaturalID gives the id that follows from creation time and UID, whatever the annotations say.
func NaturalID(obj metav1.Object) string {
	bits, ok := uidBits(obj.GetUID())
	if !ok {
		return ""
	}
	created := obj.GetCreationTimestamp()
	return newULID(uint64(created.UnixMilli()), [10]byte(bits[:10])) //nolint:gosec // a creation time is after 1970
}

// Created gives when an object was made first: for a restored one the time that its old id holds, else its creation time.
func Created(obj metav1.Object) metav1.Time {
	if at, ok := CreatedAt(obj.GetAnnotations()[v1alpha1.IDAnnotation]); ok {
		return metav1.NewTime(at)
	}
	return obj.GetCreationTimestamp()
}

// Restoring says whether an import is still filling a Room.
func Restoring(room *v1alpha1.Room) bool {
	_, marked := room.Annotations[v1alpha1.RestoringAnnotation]
	return marked
}

// CreatedAt gives the time that an id holds, and false for what is no id.
func CreatedAt(id string) (time.Time, bool) {
	u, ok := parse(id)
	return ulid.Time(u.Time()), ok
}

// Valid says whether a string has the form of an id. There is one way to write it: in upper case.
func Valid(id string) bool {
	_, ok := parse(id)
	return ok
}

func parse(id string) (ulid.ULID, bool) {
	u, err := ulid.ParseStrict(id)
	if err != nil || u.String() != id {
		return ulid.ULID{}, false
	}
	return u, true
}

// Plate gives an Agent's public id: BRNL-AGT- and the UID in Crockford's base 32, or the annotation agentrooms.dev/id.
// It is empty for an object that does not exist yet.
func Plate(agent *v1alpha1.Agent) string {
	if id := agent.Annotations[v1alpha1.IDAnnotation]; IsPlate(id) {
		return id
	}
	bits, ok := uidBits(agent.UID)
	if !ok {
		return ""
	}
	return PlatePrefix + crockford.EncodeToString(bits)
}

// IsPlate says whether a string has the form of a plate.
func IsPlate(s string) bool {
	rest, ok := strings.CutPrefix(s, PlatePrefix)
	if !ok || len(rest) != 26 {
		return false
	}
	bits, err := crockford.DecodeString(rest)
	return err == nil && crockford.EncodeToString(bits) == rest // the decoder overlooks line breaks and spare bits
}

// uidBits reads the 128 bits of a UID. The API server makes UUIDs; any other UID is hashed.
func uidBits(uid types.UID) ([]byte, bool) {
	if uid == "" {
		return nil, false
	}
	if b, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", "")); err == nil && len(b) == 16 {
		return b, true
	}
	sum := sha256.Sum256([]byte(uid))
	return sum[:16], true
}

func newULID(ms uint64, entropy [10]byte) string {
	var u ulid.ULID
	// A time beyond the year 10889 does not fit; it is cut, as no clock shows it.
	_ = u.SetTime(min(ms, ulid.MaxTime()))
	_ = u.SetEntropy(entropy[:])
	return u.String()
}

// maxSeq is the largest seq that fits into a message id: 40 bits.
const maxSeq = 1<<40 - 1

// MessageID gives the id of a message: its time, 40 bits of the room's id and its seq. So the id alone says where the
// message stands.
func MessageID(roomID string, at time.Time, seq int64) string {
	var entropy [10]byte
	sum := sha256.Sum256([]byte(roomID))
	copy(entropy[:5], sum[:5])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(seq)) //nolint:gosec // a seq is positive
	copy(entropy[5:], n[3:])
	return newULID(uint64(at.UnixMilli()), entropy) //nolint:gosec // a message's time is after 1970
}

// MessageSeq gives the seq that a message id holds, and false when the id is not of a message in that room.
func MessageSeq(roomID, id string) (int64, bool) {
	u, ok := parse(id)
	if !ok {
		return 0, false
	}
	entropy := u.Entropy()
	sum := sha256.Sum256([]byte(roomID))
	if string(entropy[:5]) != string(sum[:5]) {
		return 0, false
	}
	var n [8]byte
	copy(n[3:], entropy[5:])
	seq := binary.BigEndian.Uint64(n[:])
	if seq == 0 || seq > maxSeq {
		return 0, false
	}
	return int64(seq), true
}

// MentionID gives the id of a mention: the message's id and the mention's place in it.
func MentionID(messageID string, index int32) string {
	return messageID + "-" + strconv.Itoa(int(index))
}

// ParseMentionID gives message id and place, and false for what is no mention id.
func ParseMentionID(id string) (messageID string, index int32, ok bool) {
	messageID, tail, found := strings.Cut(id, "-")
	if !found || !Valid(messageID) {
		return "", 0, false
	}
	n, err := strconv.ParseInt(tail, 10, 32)
	if err != nil || n < 0 || n >= v1alpha1.MaxMessageMentions || strconv.FormatInt(n, 10) != tail {
		return "", 0, false
	}
	return messageID, int32(n), true
}

// Digest hashes parts so that no two different lists of parts give the same digest. It has 43 characters.
func Digest(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(digest(parts))
}

// digest is asked for names in every call of every tool: it allocates nothing for short parts.
func digest(parts []string) []byte {
	text := make([]byte, 0, 512)
	for _, p := range parts {
		text = strconv.AppendInt(text, int64(len(p)), 10)
		text = append(text, ':')
		text = append(text, p...)
		text = append(text, ';')
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// short gives 80 bits of a digest in the alphabet of object names: 16 characters.
func short(parts ...string) string {
	return nameSafe.EncodeToString(digest(parts)[:10])
}

// Chain gives what the names of a room's MessageBatches begin with. It holds part of the room's UID, so that a room made
// anew under an old name starts an empty log.
func Chain(room string, roomUID types.UID) string {
	return room + "-" + short(string(roomUID))[:6]
}

// BatchName gives the name of a room's n-th MessageBatch.
func BatchName(room string, roomUID types.UID, number int64) string {
	return fmt.Sprintf("%s-b%010d", Chain(room, roomUID), number)
}

// ParseBatchName gives the chain and the number in the name of a MessageBatch, and false for another name.
func ParseBatchName(name string) (chain string, number int64, ok bool) {
	i := strings.LastIndex(name, "-b")
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+2:], 10, 64)
	if err != nil || n < 1 || fmt.Sprintf("%010d", n) != name[i+2:] {
		return "", 0, false
	}
	return name[:i], n, true
}

// InboxName gives the name of an agent's Inbox in a room.
func InboxName(room string, roomUID types.UID, plate string) string {
	return fmt.Sprintf("%s-%s", room, short(string(roomUID), plate))
}

// FileName gives the name of the File at a path of a room. The look is what the path looks like: the API server's one object
// of a name is the room's one file of a look.
func FileName(room string, roomUID types.UID, look string) string {
	return fmt.Sprintf("%s-f%s", room, short("file", string(roomUID), look))
}

// LeaseName gives the name of a task's Lease.
func LeaseName(task string) string { return "task." + task }

// InstanceLeaseName gives the name of the Lease by which an instance shows that it lives.
func InstanceLeaseName(plate, session string) string {
	return "instance." + short(plate, session)
}

// TaskName gives the name of a task that an agent creates under an idempotency key.
func TaskName(plate, room, key string) string {
	return "task-" + short("create_task", plate, room, key)
}

// ConsentName gives the name of the Consent that the bridge makes for an owner in a room.
func ConsentName(room, owner string) string {
	return fmt.Sprintf("%s-%s", room, short("consent", owner))
}

// Session gives the name of an instance that did not name itself, from what it said of where it runs.
func Session(plate, host, workspace string) string {
	return "auto-" + short("session", plate, host, workspace)[:12]
}

// Usernames gives the Kubernetes usernames that may act as an Agent, each once, in the order of its subjects.
func Usernames(agent *v1alpha1.Agent) []string {
	var names []string
	for _, s := range agent.Spec.Subjects {
		name := s.Name
		if s.Kind == v1alpha1.SubjectServiceAccount {
			namespace := s.Namespace
			if namespace == "" {
				namespace = agent.Namespace
			}
			name = "system:serviceaccount:" + namespace + ":" + s.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
