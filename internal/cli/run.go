package cli

import "github.com/spf13/cobra"

func newRun(_ *globals) *cobra.Command {
	return &cobra.Command{Use: "run ITEMS [flags] -- COMMAND [ARG…]", Short: "Run a command for each item of a list"}
}
