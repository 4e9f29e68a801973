// Package signin keeps one-time codes to sign in to the board with: whoever starts a system on their machine is shown a link
// with a code, and the first browser that brings the code gets the token which it stands for.
//
// A code is a file in a folder that only its owner may read, named by the code's digest, so that whoever sees the folder's
// list knows no code. Removing the file is what takes the code: it succeeds once, whichever process asks.
package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Life is how long a code is good for.
const Life = 15 * time.Minute

const (
	codeLength = 26
	suffix     = ".code"
	// maxFile bounds what is read of a file.
	maxFile = 32 << 10
	// maxCodes bounds the codes that wait in a folder.
	maxCodes = 64
)

// ErrNoCode says that a code does not exist, was used, or is too old.
var ErrNoCode = errors.New("the code is not valid any more")

type stored struct {
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

// Write makes a code for a token, in a folder that is made if need be. Codes that are over are removed.
func Write(dir, token string, now time.Time) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of codes: %w", err)
	}
	waiting, err := sweep(dir, now)
	if err != nil {
		return "", err
	}
	if waiting >= maxCodes {
		return "", fmt.Errorf("making a code: %d wait already, and become old in %s", waiting, Life)
	}
	code := rand.Text()
	content, err := json.Marshal(stored{Token: token, Until: now.Add(Life)})
	if err != nil {
		return "", fmt.Errorf("encoding a code: %w", err)
	}
	if err := os.WriteFile(file(dir, code), content, 0o600); err != nil {
		return "", fmt.Errorf("writing a code: %w", err)
	}
	return code, nil
}

// Take gives the token that a code stands for, once. ErrNoCode says that there is none.
func Take(dir, code string, now time.Time) (string, error) {
	if len(code) != codeLength {
		return "", ErrNoCode
	}
	found, err := read(file(dir, code))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoCode
	} else if err != nil {
		return "", err
	}
	if err := os.Remove(file(dir, code)); errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoCode
	} else if err != nil {
		return "", fmt.Errorf("taking a code: %w", err)
	}
	if !now.Before(found.Until) {
		return "", ErrNoCode
	}
	return found.Token, nil
}

func file(dir, code string) string {
	sum := sha256.Sum256([]byte(code))
	return filepath.Join(dir, hex.EncodeToString(sum[:])+suffix)
}

func read(path string) (stored, error) {
	var found stored
	info, err := os.Stat(path)
	if err != nil {
		return found, fmt.Errorf("looking for a code: %w", err)
	}
	if info.Size() > maxFile {
		return found, fmt.Errorf("the code's file %s is too large", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return found, fmt.Errorf("reading a code: %w", err)
	}
	if err := json.Unmarshal(content, &found); err != nil {
		return found, fmt.Errorf("reading the code's file %s: %w", path, err)
	}
	return found, nil
}

// sweep removes the codes that are over, and counts the others.
func sweep(dir string, now time.Time) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return 0, fmt.Errorf("listing the codes: %w", err)
	}
	waiting := 0
	for _, path := range files {
		if found, err := read(path); err != nil || !now.Before(found.Until) {
			_ = os.Remove(path)
			continue
		}
		waiting++
	}
	return waiting, nil
}
