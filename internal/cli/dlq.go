package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/store"
)

func newDLQ(g *globals) *cobra.Command {
	cmd := g.family("dlq", newDLQList(g, nil), newDLQShow(g, nil), newDLQAnalyze(g, nil), newDLQStats(g, nil), newDLQRedrive(g),
		newDLQPurge(g, nil), newDLQWatch(g), newDLQExport(g, nil), newDLQImport(g), newDLQAdopt(g), newDLQTry(g),
		newDLQRegroup(g))
	cmd.AddCommand(newLetterVerbs(g)...)
	return cmd
}

// letterVerb is a verb on letters that has no command line of its own, except perhaps a flag.
type letterVerb struct {
	event    store.Event
	done     string
	required bool // a reason is needed
	flags    func(*letterBulk, *pflag.FlagSet)
}

var letterVerbs = []letterVerb{
	{event: store.OnDiscard, done: "discarded", required: true},
	{event: store.OnHold, done: "held"},
	{event: store.OnUnhold, done: "released", flags: func(l *letterBulk, fs *pflag.FlagSet) {
		fs.BoolVar(&l.reviewed, "reviewed", false, "a person found that they may be redriven: without --force from now on")
	}},
	{event: store.OnRequalify, done: "requalified", required: true},
	{event: store.OnRestore, done: "restored"},
	{event: store.OnNote, done: "noted", required: true},
}

// newLetterVerbs makes the commands of letterVerbs.
func newLetterVerbs(g *globals) (all []*cobra.Command) {
	for _, v := range letterVerbs {
		l := &letterBulk{bulk: bulk{globals: g, required: v.required}, event: v.event, done: v.done}
		cmd := g.command(g.described("dlq "+string(v.event), cobra.ArbitraryArgs), l.run, l)
		if v.flags != nil {
			v.flags(l, cmd.Flags())
		}
		all = append(all, cmd)
	}
	return all
}
