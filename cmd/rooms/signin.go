package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/up"
)

func newSignInCommand() *cobra.Command {
	dataDir := ""
	cmd := &cobra.Command{
		Use:   "signin",
		Short: "Print a link that signs a browser in to the board of a running rooms up, once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := up.SignInLink(dataDir, time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), link)
			return err
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", datadir.Default, "folder that the system keeps everything in")
	return cmd
}
