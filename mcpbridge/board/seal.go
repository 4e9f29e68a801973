package board

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// KeyBytes is how long the key is that replicas seal sessions with.
const KeyBytes = 32

// errSeal says that something was not sealed here, or for another purpose, or was changed since.
var errSeal = errors.New("the seal is broken")

// sealer encrypts what is handed to a browser to keep. Replicas with the same key open what each other sealed.
type sealer struct {
	aead cipher.AEAD
	key  []byte
}

// newSealer makes a sealer from a key of KeyBytes bytes; a random key when there is none.
func newSealer(key []byte) (*sealer, error) {
	if key == nil {
		key = make([]byte, KeyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
	}
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("the key has %d bytes, it must have %d", len(key), KeyBytes)
	}
	derived, err := hkdf.Key(sha256.New, key, nil, "agentrooms board", KeyBytes)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("making the cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("making the cipher: %w", err)
	}
	return &sealer{aead: aead, key: derived}, nil
}

// seal encrypts a value for a purpose.
func (s *sealer) seal(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding what is to be sealed: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(purpose))), nil
}

// open decrypts what was sealed for the purpose.
func (s *sealer) open(purpose, sealed string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return errSeal
	}
	text, err := s.aead.Open(nil, nil, raw, []byte(purpose))
	if err != nil {
		return errSeal
	}
	if err := json.Unmarshal(text, v); err != nil {
		return errSeal
	}
	return nil
}

// mac gives a code for a text that nobody can make without the key.
func (s *sealer) mac(purpose, text string) string {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "%d:%s%s", len(purpose), purpose, text)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
