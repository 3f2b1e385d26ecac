package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

func newDLQPurge(g *globals, of *jobLetters) *cobra.Command {
	p := &purge{globals: g}
	l := &letterBulk{
		bulk: bulk{globals: g, required: true}, event: store.OnPurge, done: "purged", narrow: p.narrow, choice: letterFlags{of: of},
	}
	return g.command(g.described("dlq purge", cobra.ArbitraryArgs), l.run, l, p)
}

func (p *purge) register(fs *pflag.FlagSet) {
	fs.StringVar(&p.older, "older-than", "", "only letters of this age or older, such as 30d; 0s is any")
	fs.StringVar(&p.by, "by", "died", "what the age is counted from: died, first_failed or last_failed")
	fs.StringSliceVar(&p.statuses, "status", nil, "letters of these statuses: resolved, discarded, open, review, quarantined")
}

func (*purge) read(*globals) error { return nil }

// purge adds age and statuses to the choice of letters.
type purge struct {
	*globals
	older, by string
	statuses  []string
}

// narrow adds age and statuses to a filter.
func (p *purge) narrow(f *nixie.Filter, ids bool) error {
	switch {
	case len(f.Statuses) > 0:
		return usagef("status: in --filter is no permission to remove letters: name them with --status")
	case ids && (p.older != "" || len(p.statuses) > 0):
		return usagef("IDs name letters that are resolved or discarded: leave --older-than and --status out")
	case ids:
		return nil
	case p.older == "":
		return usagef("--older-than is empty: say which age letters must have, such as 30d; 0s is any")
	}
	age, err := filter.ParseDuration(p.older)
	if err != nil {
		return usagef("--older-than: %w", err)
	}
	for _, s := range p.statuses {
		if !lifecycle.May(nixie.Status(s), store.OnPurge) {
			return usagef("--status %q: a purge takes resolved, discarded, open, review and quarantined", s)
		}
		f.Statuses = append(f.Statuses, nixie.Status(s))
	}
	times := map[string]*nixie.Times{"died": &f.Died, "first_failed": &f.FirstFailed, "last_failed": &f.LastFailed}[p.by]
	if times == nil {
		return usagef("--by is %q: give died, first_failed or last_failed", p.by)
	}
	before := p.Now().Add(-age + time.Nanosecond) // Before is not included
	if times.Before.IsZero() || before.Before(times.Before) {
		times.Before = before
	}
	slices.Sort(f.Statuses)
	return nil
}
