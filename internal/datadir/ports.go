package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	portsFile = "ports.json"
	// Ports are chosen below the range from which Linux takes the local port of outgoing connections. In that range a
	// client that keeps dialling a server which is just being restarted can take the server's port away, or even be
	// connected to itself.
	lowestPort, highestPort = 20000, 32000
	portTries               = 200
	// portPatience is how long a port that was used before may take to become free: a killed server needs a moment.
	portPatience = 5 * time.Second
	pollInterval = 20 * time.Millisecond
)

// Port returns the port that the name had before, if it is free or becomes free soon; else another free one, which is
// kept for the next time.
func (d *Dir) Port(ctx context.Context, name string) (int, error) {
	ports, err := d.readPorts()
	if err != nil {
		return 0, err
	}
	if port, ok := ports[name]; ok {
		patience, cancel := context.WithTimeout(ctx, portPatience)
		defer cancel()
		if AwaitFree(patience, port) == nil {
			return port, nil
		}
	}
	port, err := choosePort(ports)
	if err != nil {
		return 0, fmt.Errorf("choosing a port for %s: %w", name, err)
	}
	ports[name] = port
	content, err := json.MarshalIndent(ports, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("writing the ports: %w", err)
	}
	return port, d.WriteFile(portsFile, append(content, '\n'), 0o600)
}

func (d *Dir) readPorts() (map[string]int, error) {
	ports := map[string]int{}
	content, err := os.ReadFile(d.Path(portsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ports, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ports: %w", err)
	}
	if err := json.Unmarshal(content, &ports); err != nil {
		return nil, fmt.Errorf("reading %s (remove it to choose new ports): %w", d.Path(portsFile), err)
	}
	return ports, nil
}

func choosePort(taken map[string]int) (int, error) {
	used := map[int]bool{}
	for _, port := range taken {
		used[port] = true
	}
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort) //nolint:gosec // no secret
		if !used[port] && isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of %d tries between %d and %d was free", portTries, lowestPort, highestPort)
}

// AwaitFree waits until nobody listens on a port of the loopback address. A port that this process may not have is an error at
// once.
func AwaitFree(ctx context.Context, port int) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := tryPort(port)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("port %d cannot be used: %w", port, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d is in use: %w", port, ctx.Err())
		case <-ticker.C:
		}
	}
}

func isFree(port int) bool { return tryPort(port) == nil }

func tryPort(port int) error {
	listener, err := net.Listen("tcp", Loopback(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// Loopback is the address of a port on this machine.
func Loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
