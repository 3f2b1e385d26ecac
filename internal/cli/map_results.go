package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func newMapResults(g *globals) *cobra.Command {
	var name jobFlag
	return g.command(&cobra.Command{
		Use:   "results --job JOB",
		Short: "List what items came to",
		Long: `Lists the results of items that succeeded: the JSON that their commands wrote to
$NIXIE_RESULT_FILE. An item whose commands wrote nothing there has none.`,
		Example: `  nixie map results --job fmt
  nixie map results --job fmt -o jsonl | jq -s 'map(.result.lines) | add'`,
	}, func(context.Context, []string) error {
		return rows(g, "", []column[worktree.Result]{
			{name: "item", kind: flex}, {name: "result", kind: flex}, {name: "commit", show: asWide}, {name: "lease", show: asWide},
		}, worktree.ResultsOf(g.worktrees(), name.job))
	}, &name)
}
