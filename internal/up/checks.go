package up

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/agentrooms/agentrooms/internal/datadir"
)

const (
	// portPatience is how long a port that was asked for may be in use, by one that is just ending.
	portPatience = 5 * time.Second
	// planeSpace is how many bytes must be free for a control plane: etcd takes 120 MiB at once, and more as its log grows.
	planeSpace = 256 << 20
	// clientSpace is how many bytes must be free for logs and tokens alone.
	clientSpace = 16 << 20
	// maxMetadata is how much of a stranger's answer is read.
	maxMetadata = 64 << 10
)

// space is how many bytes the data folder needs at the start.
func (o *Options) space() uint64 {
	if o.Kubeconfig != "" {
		return clientSpace
	}
	return planeSpace
}

// checkPort gives an error when the port that was asked for cannot be had, with who has it as far as that can be told.
func (s *system) checkPort(ctx context.Context) error {
	port := s.opts.Port
	if port == 0 {
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	err := datadir.AwaitFree(patience, port)
	const choose = "choose another with --port (0 for a free one)"
	switch {
	case err == nil:
		return nil
	case patience.Err() == nil: // It did not wait: nobody who ends makes this port free.
		return fmt.Errorf("%w: %s", err, choose)
	case servesRooms(context.WithoutCancel(ctx), port):
		return fmt.Errorf("port %d is in use by another bridge of Agent Rooms, likely of another `rooms up`: stop that, or %s", port, choose)
	}
	return fmt.Errorf("port %d is in use by another program: stop that, or %s", port, choose)
}

// servesRooms says whether a bridge of Agent Rooms answers on a port.
func servesRooms(ctx context.Context, port int) bool {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	url := "http://" + datadir.Loopback(port) + server.WellKnownProtectedResourcePath + "/mcp"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	var metadata struct {
		ResourceName string `json:"resource_name"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxMetadata)).Decode(&metadata)
	return err == nil && metadata.ResourceName == "Agent Rooms"
}
