package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newManagerCommand() *cobra.Command {
	return &cobra.Command{Use: "manager", RunE: func(*cobra.Command, []string) error { return errors.New("not here yet") }}
}
