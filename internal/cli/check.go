package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/office"
)

// thresholds reads the flags of check.
type thresholds struct {
	flags          *pflag.FlagSet
	asked          office.Thresholds
	queues         []string
	depth, letters int64
	age, letterAge durationFlag
	rate           rateFlag
}

func (t *thresholds) register(fs *pflag.FlagSet) {
	t.flags = fs
	fs.StringSliceVar(&t.queues, "queue", nil, "queues to look at (default all)")
	fs.Int64Var(&t.depth, "max-depth", 0, "messages that are due and wait, in each queue")
	fs.Var(&t.age, "max-age", "since the message that waits for longest, ready or blocked, became due, such as 10m or 1d")
	fs.Var(&t.rate, "max-rate", "deaths in a time, such as 10/5m or 100/h")
	fs.Int64Var(&t.letters, "max-letters", 0, "letters that need a person")
	fs.Var(&t.letterAge, "max-letter-age", "since the oldest letter that needs a person died")
}

func (t *thresholds) read(*globals) error {
	o := &t.asked
	*o = office.Thresholds{
		Queues: t.queues, Age: time.Duration(t.age), LetterAge: time.Duration(t.letterAge), Deaths: t.rate.n, Interval: t.rate.every,
	}
	some := t.age > 0 || t.letterAge > 0 || t.rate.n != nil
	for _, count := range [...]struct {
		name string
		n    *int64
		into **int64
	}{{"max-depth", &t.depth, &o.Depth}, {"max-letters", &t.letters, &o.Letters}} {
		if !t.flags.Changed(count.name) {
			continue
		}
		if *count.n < 0 {
			return usagef("--%s is %d: give 0 or more", count.name, *count.n)
		}
		*count.into, some = count.n, true
	}
	if !some {
		return usagef("no threshold is given: give --max-depth, --max-age, --max-rate, --max-letters or --max-letter-age")
	}
	return nil
}

func newCheck(g *globals) *cobra.Command {
	var t thresholds
	return g.inOffice(g.described("check"), func(ctx context.Context, o *office.Office, _ []string) error {
		v, err := o.Check(ctx, t.asked)
		if err != nil {
			return err
		}
		return cmp.Or(g.objectOf(v, v.Exceeds, func(w io.Writer) { g.printExceeds(w, &v) }), exitIf(!v.OK, ExitThreshold))
	}, &t)
}

func (g *globals) printExceeds(w io.Writer, v *office.CheckView) {
	if v.OK {
		fmt.Fprintf(w, "ok: %s within the thresholds\n", plural(int64(v.Queues), "queue"))
		return
	}
	for _, e := range v.Exceeds {
		look := []string{"message", "list"}
		if e.About == "letter" {
			look = []string{"dlq", "list"}
		}
		fmt.Fprintf(w, "%s: %s: %s; %s\n", escapeLine(e.Queue), e.Check, e.Text, g.typed(append(look, "--filter", quote(e.Filter))...))
	}
}
