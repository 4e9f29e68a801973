package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/runner/agent"
)

func newListenCommand() *cobra.Command {
	f := &runnerFlags{}
	cmd := &cobra.Command{
		Use:   "listen --token-file FILE [--room ROOM]... -- COMMAND [ARGUMENTS]",
		Short: "Run a command whenever an agent is woken",
		Long: `Run a command whenever an agent is woken: by a mention, by a task that is assigned to it, by a proposal that waits for its
decision, or by the rejection of one of its own. The command reads the event as one JSON document on standard input, one at a
time. An event is acknowledged when the command ends with 0, else it comes again after a while: none is lost.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.options(cmd, args)
			if err != nil {
				return err
			}
			return agent.Listen(cmd.Context(), opts)
		},
	}
	f.add(cmd, 15*time.Minute)
	cmd.Flags().StringSliceVar(&f.rooms, "room", nil, "room to listen to, by id or name, may be given again; without it, all of the agent's")
	return cmd
}
