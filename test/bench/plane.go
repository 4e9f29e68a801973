package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// plane is a running `rooms up`.
type plane struct {
	Kubeconfig string         `json:"kubeconfig"`
	Replicas   []string       `json:"mcp_replicas"`
	PIDs       map[string]int `json:"pids"`

	config *rest.Config
	cmd    *exec.Cmd
	dir    string
	// blobURL is where contents are, empty for the plane's own folder.
	blobURL string
}

// startTimeout is how long the plane may take to be ready.
const startTimeout = 3 * time.Minute

// startPlane starts the system in a folder of its own, as a user does, with a number of replicas of the bridge.
func startPlane(ctx context.Context, binary string, bridges int, blobURL string) (*plane, error) {
	dir, err := os.MkdirTemp("", "rooms-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	p := &plane{dir: dir, blobURL: blobURL}
	p.cmd = exec.Command(binary, "up", "--json", "--port=0", "--data-dir="+dir, "--rate-limits=off",
		fmt.Sprint("--bridges=", bridges), "--no-demo", "--blob-url="+blobURL)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("connecting to rooms: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting rooms: %w", err)
	}
	line := make(chan []byte, 1)
	go func() {
		defer close(line)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		if scanner.Scan() {
			line <- scanner.Bytes()
		}
	}()
	select {
	case text := <-line:
		err = json.Unmarshal(text, p)
	case <-time.After(startTimeout):
		err = errors.New("it was not ready in time")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		p.config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("starting rooms: %w", err)
	}
	p.config.QPS = -1
	return p, nil
}

// bridgeConfig is how the bridge reaches the API server.
func (p *plane) bridgeConfig() (*rest.Config, error) {
	path := filepath.Join(p.dir, "kubeconfigs", "system.serviceaccount.agentrooms-system.agentrooms-bridge.kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading how the bridge reaches the API server: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// stop ends the system and drops its data.
func (p *plane) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}
