package up

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/localplane"
	"github.com/agentrooms/agentrooms/internal/signin"
)

// boardURLFile says where the board of a running system is.
const boardURLFile = "board/url"

// SignInLink makes another link to sign in with, for a system that runs in a data folder; empty means datadir.Default.
func SignInLink(dataDir string, now time.Time) (string, error) {
	if dataDir == "" {
		dataDir = datadir.Default
	}
	url, err := os.ReadFile(filepath.Join(dataDir, boardURLFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no system of its own has run in %s: start one with rooms up, or name its folder with --data-dir", dataDir)
	} else if err != nil {
		return "", fmt.Errorf("finding the board: %w", err)
	}
	token, err := localplane.ReadAdminToken(dataDir)
	if err != nil {
		return "", err
	}
	return signInLink(filepath.Join(dataDir, boardCodes), strings.TrimSpace(string(url)), token, now)
}

// signInLink makes a link that signs its first user in with a token. The code stands behind #, which no browser sends to a
// server and no server logs.
func signInLink(codes, board, token string, now time.Time) (string, error) {
	code, err := signin.Write(codes, token, now)
	if err != nil {
		return "", fmt.Errorf("making the link to sign in with: %w", err)
	}
	return board + "signin#" + code, nil
}
