package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
)

// letterVerb is a verb that has nothing of its own but its help, and perhaps a flag.
type letterVerb struct {
	event                nixie.Event
	done                 string
	required             bool // a reason is needed
	short, long, example string

	flags func(*letterBulk, *pflag.FlagSet)
}

var letterVerbs = []letterVerb{
	{
		event: nixie.OnDiscard, done: "discarded", required: true, short: "Give letters up, with a reason",
		long: `Marks letters as discarded: by IDs, by --filter, or --all. Letters that are open,
in review or quarantined are chosen. They stay, with reason and actor, but nobody
is asked to look at them any more.`,
		example: `  nixie dlq discard order-4711 --reason 'customer cancelled'
  nixie dlq discard --filter 'queue:test age:>30d' --reason 'test data' --dry-run
  nixie dlq discard --filter 'queue:test age:>30d' --reason 'test data' --yes`,
	},
	{
		event: nixie.OnHold, done: "held", short: "Put letters on hold, for a person to look at",
		long: `Moves open letters to review: they are not redriven without --force until somebody
looked and releases them with nixie dlq unhold. By IDs, by --filter, or --all.`,
		example: `  nixie dlq hold order-4711 --reason 'ask the customer first'
  nixie dlq hold --filter 'reason:validation age:<1h' --dry-run`,
	},
	{
		event: nixie.OnUnhold, done: "released", short: "Let letters on hold go on",
		long: `Moves letters in review back to open: by IDs, by --filter, or --all. A letter whose
rule of policy says that it needs review is still redriven with --force only, unless
--reviewed says that a person has found that it may go.`,
		example: `  nixie dlq unhold order-4711
  nixie dlq unhold --filter 'queue:orders' --reviewed --reason 'amounts are right' --yes`,
		flags: func(l *letterBulk, fs *pflag.FlagSet) {
			fs.BoolVar(&l.reviewed, "reviewed", false, "a person found that they may be redriven: without --force from now on")
		},
	},
	{
		event: nixie.OnRequalify, done: "requalified", required: true, short: "Let quarantined letters be redriven again",
		long: `Moves letters that were redriven too often back to open, with a reason: by IDs, by
--filter, or --all. How often they were redriven stays, so a redrive of them needs
a higher --max-redrives.`,
		example: `  nixie dlq requalify order-4711 --reason 'the bank mended its side'
  nixie dlq redrive order-4711 --max-redrives 5 --reason 'the bank mended its side'`,
	},
	{
		event: nixie.OnRestore, done: "restored", short: "Take the discard of letters back",
		long: `Moves discarded letters back to open: by IDs, by --filter, or --all. What was purged
is gone, and a letter whose message was cancelled has nothing to restore.`,
		example: `  nixie dlq restore order-4711 --reason 'it was needed after all'
  nixie dlq restore --filter 'status:discarded died:>2026-01-31' --dry-run`,
	},
	{
		event: nixie.OnNote, done: "noted", required: true, short: "Write a note on letters, for those who come after",
		long: `Appends a note to letters of any status: by IDs, by --filter, or --all. Notes are
shown by nixie dlq show with their time and author, and stay when a letter is
redriven. Without status: in the filter, unresolved letters are meant.`,
		example: `  nixie dlq note order-4711 --text 'ticket 81: customer was asked'
  nixie dlq note --filter 'fingerprint:v2-0123456789abcdef' --text 'mended in 1.4.2' --yes`,
	},
}

// newLetterVerbs makes the commands of the verbs.
func newLetterVerbs(g *globals) (all []*cobra.Command) {
	for _, v := range letterVerbs {
		l := &letterBulk{bulk: bulk{globals: g, required: v.required}, event: v.event, done: v.done}
		cmd := g.command(&cobra.Command{
			Use: string(v.event) + " [ID…]", Short: v.short, Long: v.long, Example: v.example, Args: cobra.ArbitraryArgs,
		}, l.run, l)
		if v.flags != nil {
			v.flags(l, cmd.Flags())
		}
		all = append(all, cmd)
	}
	return all
}
