// Package s3 gives tests a real S3 server: versitygw, on a folder of the test's own. It is built once from its Go module, pinned in
// hack/s3server, into the user's cache folder. With -short the tests that ask are skipped.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	bucket    = "rooms"
	region    = "us-east-1"
	accessKey = "agentrooms-test"
	secretKey = "agentrooms-test-secret"
	// readyTimeout bounds the start of the server.
	readyTimeout = 30 * time.Second
)

// Server is an S3 server with one bucket. What it holds outlives Stop and Restart.
type Server struct {
	// URL opens the bucket, as a blob store takes it.
	URL string
	// Endpoint is the address of the server, as in http://127.0.0.1:7070.
	Endpoint string

	program, dir, address string
	process               *exec.Cmd
	exited                chan struct{}
	log                   *buffer
}

// Start starts a server for as long as the test runs and gives the URL of its bucket. It sets the credentials in the
// environment, so the test cannot be parallel.
func Start(tb testing.TB) string {
	tb.Helper()
	return New(tb).URL
}

// New starts a server like Start, and gives it to be stopped and restarted.
func New(tb testing.TB) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs an S3 server")
	}
	path, err := program(tb.Context())
	if err != nil {
		tb.Fatalf("finding the S3 server: %v", err)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": filepath.Join(tb.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(tb.TempDir(), "none"),
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		tb.Setenv(name, value)
	}
	s := &Server{program: path, dir: tb.TempDir(), log: &buffer{}}
	tb.Cleanup(s.kill)
	// A port that was free a moment ago may be taken by now.
	for range 5 {
		if err = s.listen(); err == nil {
			err = s.start(tb.Context())
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		tb.Fatalf("starting the S3 server: %v\n%s", err, s.log)
	}
	if err := s.makeBucket(tb.Context()); err != nil {
		tb.Fatalf("making the bucket: %v\n%s", err, s.log)
	}
	return s
}

// Stop ends the server at once.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.kill()
}

// Restart starts the server again at its address, with what it held.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.kill()
	if err := s.start(tb.Context()); err != nil {
		tb.Fatalf("starting the S3 server again: %v\n%s", err, s.log)
	}
}

// Folder gives where the bucket keeps the objects below a prefix, one a file.
func (s *Server) Folder(prefix ...string) string {
	return filepath.Join(append([]string{s.dir, "data", bucket}, prefix...)...)
}

// listen chooses a free port.
func (s *Server) listen() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("finding a free port: %w", err)
	}
	s.address = listener.Addr().String()
	s.Endpoint = "http://" + s.address
	s.URL = "s3://" + bucket + "?" + url.Values{
		"endpoint": {s.Endpoint}, "region": {region}, "use_path_style": {"true"},
	}.Encode()
	return listener.Close()
}

// start runs the program and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	// Sidecar files instead of extended attributes: not every file system of a test machine has those.
	s.process = exec.Command(s.program, "--access", accessKey, "--secret", secretKey, "--region", region,
		"--port", s.address, "--health", "/health", "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "data"))
	s.process.Stdout, s.process.Stderr = s.log, s.log
	for _, dir := range []string{"meta", "data"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("running %s: %w", s.program, err)
	}
	s.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		_ = process.Wait()
		close(exited)
	}(s.process, s.exited)
	return s.await(ctx)
}

func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.exited:
			return errors.New("the server has ended")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server: %w", ctx.Err())
		case <-ticker.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/health", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
}

func (s *Server) kill() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Kill()
	<-s.exited
	s.process = nil
}

func (s *Server) makeBucket(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return err
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.BaseEndpoint = aws.String(s.Endpoint)
		o.UsePathStyle = true
	})
	_, err = client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	return err
}

// buffer collects what the server says.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String gives what was said so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
