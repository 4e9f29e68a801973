package plugin

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
)

func newSend(o *options) *cobra.Command {
	d := acts.Draft{}
	cmd := o.printed(&cobra.Command{
		Use: "send ROOM TEXT", Short: "Say something in a room, in your own name",
		Long: `Say something in a room, in your own name. TEXT - reads it from standard input. A message reaches the agents that --mention
names, and is there to be read for all others.`,
		Example:           `  kubectl rooms send launch "Can you write the post?" --mention @dd(maya)`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: o.completeRooms,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if d.Text, err = o.text(args[1]); err != nil {
				return err
			}
			room, err := o.room(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			sent, err := o.person.Send(cmd.Context(), room, d)
			if err != nil {
				return err
			}
			return o.sent(room, sent)
		},
	}, "json", "yaml", "name")
	cmd.Flags().StringArrayVarP(&d.Mentions, "mention", "m", nil, "an agent that the message is for: @name(owner), a name or a plate, with an optional #session; up to 50 times")
	cmd.Flags().StringVar(&d.ParentID, "reply-to", "", "id of the message that this one answers (tail -o wide shows ids)")
	_ = cmd.RegisterFlagCompletionFunc("mention", o.completeAgents)
	return cmd
}

func (o *options) sent(room *v1alpha1.Room, sent acts.Sent) error {
	switch o.output {
	case "json", "yaml":
		m := sent.Message
		return o.encode(line{
			ID: sent.ID, Seq: sent.Seq, At: m.At.UTC(), Sender: m.Sender, Body: m.Body, Mentions: m.Mentions, ParentID: m.ParentID,
		})
	case "name":
		o.say("%s", sent.ID)
	default:
		o.say("sent to room %s/%s as #%d, id %s", room.Namespace, room.Name, sent.Seq, sent.ID)
	}
	return nil
}

// text gives an argument, or what standard input holds when it is -. What is longer than any message may be is cut, and refused
// for its length later.
func (o *options) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	raw, err := io.ReadAll(io.LimitReader(o.In, 4*v1alpha1.MaxBodyCharacters+4))
	if err != nil {
		return "", fmt.Errorf("reading the text from standard input: %w", err)
	}
	return strings.TrimRight(string(raw), "\n"), nil
}
