package blobs

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The folders of a room.
const (
	contentDir = "content/"
	uploadDir  = "uploads/"
	tempDir    = "temp/"
	trashDir   = "trash/"
)

var (
	roomPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?$`)
	uploadPattern = regexp.MustCompile(`^[A-Za-z0-9]+([-.][A-Za-z0-9]+)*$`)
	hashPattern   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	trashPattern  = regexp.MustCompile(`^[0-9a-f]{64}\.[0-9a-f]{16}$`)
	// leftPattern is what fileblob calls an object that is not whole yet.
	leftPattern = regexp.MustCompile(`\.[0-9a-f]{1,16}\.tmp$`)
)

// maxUploadID bounds the id of an upload, in bytes.
const maxUploadID = 128

// roomPrefix gives the prefix of all keys of a room.
func roomPrefix(room types.UID) (string, error) {
	if !roomPattern.MatchString(string(room)) {
		return "", invalid("%.80q is not the UID of a room", string(room))
	}
	return "rooms/" + string(room) + "/", nil
}

// contentKey gives where content of a hash lies.
func contentKey(room types.UID, sha256hex string) (string, error) {
	prefix, err := roomPrefix(room)
	if err != nil {
		return "", err
	}
	if !hashPattern.MatchString(sha256hex) {
		return "", invalid("%.80q is not a sha256: 64 digits 0-9a-f are", sha256hex)
	}
	return prefix + contentDir + sha256hex, nil
}

// uploadKey gives where an upload lies until it is checked.
func uploadKey(room types.UID, uploadID string) (string, error) {
	prefix, err := roomPrefix(room)
	if err != nil {
		return "", err
	}
	if len(uploadID) > maxUploadID || !uploadPattern.MatchString(uploadID) ||
		strings.HasSuffix(uploadID, ".tmp") || strings.HasSuffix(uploadID, ".attrs") {
		return "", invalid("%.140q is not the id of an upload: letters, digits, and single - and . between them are, at most %d", uploadID, maxUploadID)
	}
	return prefix + uploadDir + uploadID, nil
}

// nonce gives 16 random digits.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
