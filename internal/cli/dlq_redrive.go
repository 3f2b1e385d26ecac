package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/store"
)

func newDLQRedrive(g *globals) *cobra.Command {
	l := &letterBulk{bulk: bulk{globals: g, required: true}, event: store.OnRedrive, done: "redriven", target: &redriveTarget{}}
	topic := &topicRedrive{letterBulk: l}
	return g.command(g.described("dlq redrive", cobra.ArbitraryArgs), func(ctx context.Context, args []string) error {
		switch {
		case topic.from != "":
			return topic.run(ctx, args)
		case topic.group != "":
			return usagef("--group is for --from")
		}
		if err := l.target.resolve(g); err != nil {
			return err
		}
		return l.run(ctx, args)
	}, l, l.target, topic)
}
