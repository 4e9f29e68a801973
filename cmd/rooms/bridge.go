package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newBridgeCommand() *cobra.Command {
	return &cobra.Command{Use: "bridge", RunE: func(*cobra.Command, []string) error { return errors.New("not here yet") }}
}
