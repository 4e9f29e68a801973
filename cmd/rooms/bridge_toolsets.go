package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

func newRoomsToolset(ctx context.Context, cfg *rest.Config, log *slog.Logger, registry *prometheus.Registry) (toolset.Toolset, error) {
	return rooms.New(ctx, rooms.Options{Config: cfg, Logger: logr.FromSlogHandler(log.Handler()), Registry: registry})
}
