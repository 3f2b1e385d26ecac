package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func newMapResults(g *globals) *cobra.Command {
	var job string
	cmd := &cobra.Command{
		Use:   "results --job JOB",
		Short: "List what items came to",
		Long: `Lists the results of items that succeeded: the JSON that their commands wrote to
$NIXIE_RESULT_FILE. An item whose commands wrote nothing there has none.`,
		Example: `  nixie map results --job fmt
  nixie map results --job fmt -o jsonl | jq -s 'map(.result.lines) | add'`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := named(job); err != nil {
				return err
			}
			out := newListing(g, []column[worktree.Result]{
				{name: "item", kind: flex}, {name: "result", kind: flex}, {name: "commit", show: asWide}, {name: "lease", show: asWide},
			})
			for r, err := range worktree.ResultsOf(g.worktrees(), job) {
				if err != nil {
					return err
				}
				if err := out.add(r); err != nil {
					return err
				}
			}
			return out.close()
		},
	}
	jobFlag(cmd.Flags(), &job)
	return cmd
}
