package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/runner/agent"
)

func newWorkCommand() *cobra.Command {
	f := &runnerFlags{}
	opts := agent.WorkOptions{}
	cmd := &cobra.Command{
		Use:   "work --token-file FILE --room ROOM... -- COMMAND [ARGUMENTS]",
		Short: "Claim an agent's tasks and run a command for each",
		Long: `Claim the tasks that are assigned to an agent, one at a time, and run a command for each. The command reads the task as one
JSON document on standard input, and the lease is renewed while it runs. Exit status 0 means that the task is done, 75 that it is
to be tried again later, any other that it failed. What the command prints last is the summary on the board.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.rooms) == 0 {
				return errors.New("--room must name the room to work in, by id or name")
			}
			if opts.Attempts < 1 {
				return errors.New("--max-attempts must be 1 or more")
			}
			var err error
			if opts.Options, err = f.options(cmd, args); err != nil {
				return err
			}
			return agent.Work(cmd.Context(), opts)
		},
	}
	f.add(cmd, 2*time.Hour)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.rooms, "room", nil, "room to work in, by id or name; may be given again")
	flags.BoolVar(&opts.Unassigned, "any", false, "take tasks that nobody is assigned, too")
	flags.IntVar(&opts.Attempts, "max-attempts", 5, "tries of a task that cannot be done for the time being, before it is given up as failed")
	return cmd
}
