package up

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	boardKeyFile  = "board/key"
	boardKeyBytes = 32
	boardCodes    = "board/codes"
)

// boardFlags gives the flags by which every replica of the bridge serves the board alike.
func (s *system) boardFlags() ([]string, error) {
	if _, err := os.Stat(s.dir.Path(boardKeyFile)); errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, boardKeyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("making the board's key: %w", err)
		}
		text := base64.StdEncoding.EncodeToString(key) + "\n"
		if err := s.dir.WriteFile(boardKeyFile, []byte(text), 0o600); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("looking for the board's key: %w", err)
	}
	return []string{"--board-key-file", s.dir.Path(boardKeyFile), "--board-codes-dir", s.dir.Path(boardCodes)}, nil
}

// firstSignIn makes a link for the admin of our own control plane, and notes where the board is. On another cluster there is
// none: people have tokens of their own there.
func (s *system) firstSignIn(board string) (string, error) {
	if s.plane == nil {
		return "", nil
	}
	if err := s.dir.WriteFile(boardURLFile, []byte(board+"\n"), 0o600); err != nil {
		return "", err
	}
	return signInLink(s.dir.Path(boardCodes), board, s.plane.AdminToken(), time.Now())
}
