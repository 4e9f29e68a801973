package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

func newRoomsToolset(
	ctx context.Context, cfg *rest.Config, log *slog.Logger, registry *prometheus.Registry, store *blobs.Store,
) (*rooms.Toolset, error) {
	o := rooms.Options{Config: cfg, Logger: logr.FromSlogHandler(log.Handler()), Registry: registry, Blobs: store}
	if store != nil {
		o.Bucket = store.Bucket()
	}
	return rooms.New(ctx, o)
}
