package localplane

import (
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tokenFile holds the admin's bearer token, in the form that the API server reads: token, user, id, groups.
const tokenFile = "pki/tokens.csv"

// AdminToken is a bearer token that may do what the admin's kubeconfig may, for what takes no certificates: a browser.
func (p *Plane) AdminToken() string { return p.adminToken }

// prepareToken reads the admin's token, or makes one. It stays the same as long as the admin does.
func (p *Plane) prepareToken() error {
	if row, err := readTokens(p.dir.Path()); err == nil && row[1] == p.user() {
		p.adminToken = row[0]
		return nil
	}
	p.adminToken = rand.Text() + rand.Text()
	var line strings.Builder
	w := csv.NewWriter(&line)
	if err := w.Write([]string{p.adminToken, p.user(), "admin", adminGroup}); err != nil {
		return fmt.Errorf("encoding the admin's token: %w", err)
	}
	w.Flush()
	return p.dir.WriteFile(tokenFile, []byte(line.String()), 0o600)
}

// ReadAdminToken gives the admin's token of a plane that keeps its data in a folder.
func ReadAdminToken(dataDir string) (string, error) {
	row, err := readTokens(dataDir)
	if err != nil {
		return "", err
	}
	return row[0], nil
}

func readTokens(dataDir string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(dataDir, tokenFile))
	if err != nil {
		return nil, fmt.Errorf("reading the admin's token: %w", err)
	}
	row, err := csv.NewReader(strings.NewReader(string(content))).Read()
	if err != nil || len(row) != 4 {
		return nil, fmt.Errorf("reading the admin's token: %s is not what it should be: remove it and start again", tokenFile)
	}
	return row, nil
}
