package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the flags of commands with many, those that most people need first. Flags of no
// group come last.
var flagGroups = []struct {
	title string
	names []string
}{
	{"Most used", []string{"parallel", "max-attempts", "timeout", "backoff", "job", "id-field", "dead-at-once", "stop-after",
		"no-output", "results"}},
	{"Which items", []string{"format", "json-path", "where", "distinct", "sort-by", "offset", "max-items", "skip-bad", "mix",
		"max-redrives"}},
	{"When to try again, and when to give up", []string{"min-age", "max-age", "max-crashes", "max-deliveries", "retry-budget",
		"in-claim", "profile", "case", "breaker", "host", "halt-after", "permanent-exit", "never-dead", "review-on", "on-exhausted",
		"on-item-failure"}},
	{"How commands run", []string{"step", "lease", "grace", "watchdog"}},
	{"What is shown and kept", []string{"tag", "mask", "no-mask", "log-format", "log-level", "metrics"}},
}

// groupFlags makes the help of a command list its flags in groups.
func groupFlags(cmd *cobra.Command) *cobra.Command {
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		known := []string{}
		for _, g := range flagGroups {
			printFlags(c, g.title, func(f *pflag.Flag) bool { return slices.Contains(g.names, f.Name) })
			known = append(known, g.names...)
		}
		printFlags(c, "More", func(f *pflag.Flag) bool { return !slices.Contains(known, f.Name) })
		_, err := fmt.Fprintf(w, "\nGlobal Flags:\n%s", c.InheritedFlags().FlagUsages())
		return err
	})
	return cmd
}

// printFlags prints the flags of a command that belong together.
func printFlags(c *cobra.Command, title string, belongs func(*pflag.Flag) bool) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if belongs(f) {
			set.AddFlag(f)
		}
	})
	if usages := strings.TrimRight(set.FlagUsages(), "\n"); usages != "" {
		fmt.Fprintf(c.OutOrStderr(), "\n%s:\n%s\n", title, usages)
	}
}
