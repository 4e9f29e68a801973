package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/controlplane"
)

// newAssetsCommand prints the folder of the control plane's programs, so that a Makefile can hand it to envtest.
func newAssetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "assets",
		Short:  "Print the folder that holds etcd, kube-apiserver and kube-controller-manager; build them if need be",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := controlplane.Options{Progress: cmd.ErrOrStderr()}
			assets, err := controlplane.Find(cmd.Context(), opts)
			if err != nil {
				return err
			}
			dir, err := assets.Dir(opts)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
}
