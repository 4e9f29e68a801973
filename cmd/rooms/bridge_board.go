package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/board"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// maxKeyFile bounds what is read of a key's file.
const maxKeyFile = 1 << 10

// boardFlags are the flags of the pages for people.
type boardFlags struct {
	on             bool
	keyFile        string
	codesDir       string
	proxyHeaders   bool
	trustedProxies []string
}

func (f *boardFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "board", true, "serve the board, the pages for people, at /")
	flags.StringVar(&f.keyFile, "board-key-file", "", "file with the key that people's sessions are sealed with: 32 bytes in base64, the same for every replica; "+
		"without it, or when there is no such file, sessions end with the process and no other replica knows them")
	flags.StringVar(&f.codesDir, "board-codes-dir", "", "folder of one-time codes to sign in with, as rooms signin makes them")
	flags.BoolVar(&f.proxyHeaders, "board-proxy-headers", false,
		"believe X-Remote-User and X-Remote-Group of the peers in --board-trusted-proxies; the bridge must be allowed to impersonate")
	flags.StringSliceVar(&f.trustedProxies, "board-trusted-proxies", nil, "networks of authenticating proxies, such as 10.0.0.0/24")
}

// options reads what the flags say. The key is nil when no file is named.
func (f *boardFlags) options() (o board.Options, err error) {
	if f.proxyHeaders != (len(f.trustedProxies) > 0) {
		return o, fmt.Errorf("--board-proxy-headers and --board-trusted-proxies go together: name the networks whose headers are believed")
	}
	for _, text := range f.trustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return o, fmt.Errorf("--board-trusted-proxies: %q must be a network such as 10.0.0.0/24", text)
		}
		o.TrustedProxies = append(o.TrustedProxies, prefix.Masked())
	}
	o.CodesDir = f.codesDir
	if f.keyFile != "" {
		o.Key, err = readKey(f.keyFile)
	}
	return o, err
}

// readKey reads a key, nil when there is no such file.
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("--board-key-file: %w", err)
	}
	if info.Size() > maxKeyFile {
		return nil, fmt.Errorf("--board-key-file: %s is too large to be a key", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--board-key-file: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != board.KeyBytes {
		return nil, fmt.Errorf("--board-key-file: %s must hold %d random bytes in base64, such as head -c %d /dev/urandom | base64 makes",
			path, board.KeyBytes, board.KeyBytes)
	}
	return key, nil
}

// serve gives what makes the board once the server is there, nil when it is turned off.
func (f *boardFlags) serve(
	cfg *rest.Config, v *view.View, store *blobs.Store, publicURL string, log *slog.Logger, registry *prometheus.Registry,
) (func(mcpbridge.Bounds) (http.Handler, error), error) {
	if !f.on {
		return nil, nil
	}
	opts, err := f.options()
	if err != nil {
		return nil, err
	}
	if opts.Key == nil {
		log.Warn("people's sessions are known to this replica only and end with it: there is no board key", "file", f.keyFile)
	}
	opts.View, opts.Config, opts.Logger, opts.Registry = v, cfg, log, registry
	if store != nil {
		opts.Blobs = store
	}
	opts.Secure = strings.HasPrefix(publicURL, "https://")
	return func(bounds mcpbridge.Bounds) (http.Handler, error) {
		opts.Bounds = bounds
		return board.New(opts)
	}, nil
}
