package board

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var staticFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// assets are the files that pages load. Each is served under a name that holds its digest, so that browsers may keep it for
// good and replicas of two versions do not mix theirs.
type assets struct {
	byPath map[string]asset
	paths  map[string]string
}

type asset struct {
	name    string
	content []byte
}

func loadAssets() (*assets, error) {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("reading the static files: %w", err)
	}
	a := &assets{byPath: map[string]asset{}, paths: map[string]string{}}
	for _, entry := range entries {
		content, err := staticFiles.ReadFile("static/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the static files: %w", err)
		}
		sum := sha256.Sum256(content)
		at := "/static/" + hex.EncodeToString(sum[:8]) + "/" + entry.Name()
		a.byPath[at], a.paths[entry.Name()] = asset{entry.Name(), content}, at
	}
	return a, nil
}

// path gives where a file is served.
func (a *assets) path(name string) (string, error) {
	at, ok := a.paths[name]
	if !ok {
		return "", fmt.Errorf("there is no static file %s", name)
	}
	return at, nil
}

// ServeHTTP serves a file.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.byPath[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	kind := mime.TypeByExtension(path.Ext(file.name))
	if kind == "" || strings.HasSuffix(file.name, ".LICENSE") {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, file.name, time.Time{}, bytes.NewReader(file.content))
}
