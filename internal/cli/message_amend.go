package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// messageVerb is a verb that changes messages.
type messageVerb struct {
	verb                 store.ChangeVerb
	done                 string
	required             bool // a reason is needed
	short, long, example string

	flags func(*messageBulk, *pflag.FlagSet)
	check func(*messageBulk) error
}

var messageVerbs = []messageVerb{
	{
		verb: store.Cancel, done: "canceled", required: true, short: "End messages that need not be done any more",
		long: `Ends messages that are queued or leased. The lease of one that is at work is void:
its handler is told to stop, and what it does then is not recorded as a success.`,
		example: `  nixie message cancel order-4711 --reason 'customer cancelled'
  nixie message cancel --filter 'queue:test' --reason 'test data' --dry-run`,
	},
	{
		verb: store.Hold, done: "held", required: true, short: "Take queued messages out, for a person to look at",
		long: `Puts queued messages into the dead letter office for review, with a letter that
says who did it and why. In a strict stream the followers go on waiting, unless
--release-followers lets them go.`,
		example: `  nixie message hold order-4711 --reason poison --release-followers
  nixie message hold --filter 'queue:orders type:refund' --reason 'ask finance' --yes`,
		flags: func(m *messageBulk, fs *pflag.FlagSet) {
			fs.StringVar(&m.what, "as", "", "what the letter says went wrong: poison, validation …; default --reason if it is such a word")
			fs.BoolVar(&m.request.Free, "release-followers", false, "followers in its stream do not wait for it")
		},
		check: (*messageBulk).checkWhat,
	},
	{
		verb: store.RetryNow, done: "due now", short: "Make waiting messages due now",
		long: "Lets scheduled messages and those that wait for a retry go at once.",
		example: `  nixie message retry-now order-4711
  nixie message retry-now --filter 'queue:orders attempts:>0' --reason 'db is up' --yes`,
	},
	{
		verb: store.ResetAttempts, done: "reset", short: "Give messages all their attempts again",
		long:    "Sets attempts, deliveries and crashes of queued messages to 0. History and steps stay.",
		example: `  nixie message reset-attempts order-4711 --reason 'the outage ate them'`,
	},
	{
		verb: store.Reschedule, done: "rescheduled", short: "Make messages due at another time",
		long: "Sets when queued messages are due. The past is now.",
		example: `  nixie message reschedule order-4711 --at 2026-05-05T06:00:00Z
  nixie message reschedule --filter 'queue:mail' --in 2h --yes`,
		flags: func(m *messageBulk, fs *pflag.FlagSet) {
			fs.StringVar(&m.at, "at", "", "when, in RFC 3339")
			fs.StringVar(&m.in, "in", "", "after how long, such as 90m or 2d")
		},
		check: (*messageBulk).checkTime,
	},
	{
		verb: store.Move, done: "moved", short: "Move messages to another queue",
		long: `Puts queued messages at the end of another queue, with their attempts and history.
A message that was redriven stays with its letter in its queue.`,
		example: `  nixie message move order-4711 --to orders-slow
  nixie message move --filter 'queue:orders type:report' --to reports --yes`,
		flags: func(m *messageBulk, fs *pflag.FlagSet) {
			fs.StringVar(&m.request.Queue, "to", "", "queue to move to (required)")
		},
		check: func(m *messageBulk) error {
			if m.request.Queue == "" {
				return usagef("--to is empty: name the queue to move to")
			}
			return nil
		},
	},
	{
		verb: store.MayPass, done: "marked", short: "Let messages pass the head of their stream",
		long: `Marks queued messages of a strict stream, so that they may go before others of the
stream that wait for a retry or are dead, never before one that is at work. They
are handed out with a mark that says they are out of order.`,
		example: `  nixie message may-pass order-4712 --reason 'does not depend on order-4711'`,
	},
}

// messageBulk changes many messages.
type messageBulk struct {
	bulk
	messageVerb
	request      office.AmendRequest
	choice       filterFlag
	at, in, what string
}

func newMessageBulk(g *globals, v messageVerb) *cobra.Command {
	m := &messageBulk{bulk: bulk{globals: g, required: v.required}, messageVerb: v, request: office.AmendRequest{Verb: v.verb}}
	cmd := g.command(&cobra.Command{
		Use:     string(v.verb) + " [ID…]",
		Short:   v.short,
		Long:    v.long + "\n\nBy IDs or keys, or by --filter; without state: in the filter, queued ones are meant.",
		Example: v.example,
		Args:    cobra.ArbitraryArgs,
	}, m.run, &m.choice)
	m.register(cmd.Flags(), "reason", "in the audit")
	if m.flags != nil {
		m.flags(m, cmd.Flags())
	}
	return cmd
}

func (m *messageBulk) run(ctx context.Context, args []string) error {
	m.yes = m.yes || len(args) > 0 // what is named one by one needs no question
	m.request.Reason = m.reason
	f := m.choice.filter
	switch {
	case len(args) == 0 && f.IsZero():
		return usagef("nothing is chosen: give IDs or keys, or --filter")
	case len(args) > 0 && !f.IsZero():
		return usagef("choose by IDs or by --filter, not by both")
	}
	if err := cmp.Or(m.needReason(), m.canAsk()); err != nil {
		return err
	}
	if m.check != nil {
		if err := m.check(m); err != nil {
			return err
		}
	}
	return m.visit(func(o *office.Office) error {
		ids, err := m.choose(ctx, o, args, office.Amendable(f))
		if err != nil {
			return err
		}
		return m.do(func() (plan, error) {
			return plan{n: int64(len(ids)), view: alterPlan{true, len(ids)}, ask: func(w io.Writer) {
				fmt.Fprintf(w, "%s would be %s\n", plural(int64(len(ids)), "message"), m.done)
			}}, nil
		}, func() error { return m.amend(ctx, o, ids) })
	})
}

func (m *messageBulk) checkWhat() error {
	given := m.what
	if given == "" && slices.Contains(nixie.Reasons(), nixie.Reason(m.reason)) {
		given = m.reason
	}
	if given != "" && !slices.Contains(nixie.Reasons(), nixie.Reason(given)) {
		return usagef("--as is %q: give one of %v", given, nixie.Reasons())
	}
	m.request.What = nixie.Reason(given)
	return nil
}

func (m *messageBulk) checkTime() (err error) {
	switch {
	case (m.at == "") == (m.in == ""):
		return usagef("give one of --at and --in: when the messages are due")
	case m.at != "":
		if m.request.At, err = time.Parse(time.RFC3339, m.at); err != nil {
			return usagef("--at is %q: give a time such as 2026-05-05T06:00:00Z", m.at)
		}
		return nil
	}
	in, err := filter.ParseDuration(m.in)
	if err != nil || in < 0 || in > nixie.MaxDelay {
		return usagef("--in is %q: give a duration such as 90m or 2d, at most %s", m.in, nixie.MaxDelay)
	}
	m.request.At = m.Now().Add(in)
	return nil
}

// amend changes the messages and prints what became of each.
func (m *messageBulk) amend(ctx context.Context, o *office.Office, ids []nixie.ID) error {
	refused := 0
	out := newListing(m.globals, m.columns())
	err := o.Amend(ctx, ids, &m.request, func(v office.AmendView) error {
		if v.Error != "" {
			refused++
		}
		return out.add(v)
	})
	if err := errors.Join(err, m.ended(out.close(), out.n, "messages match")); err != nil {
		return err
	}
	return exitIf(refused > 0, ExitPartly)
}

// alterPlan is the JSON of --dry-run.
type alterPlan struct {
	DryRun   bool `json:"dry_run"`
	Selected int  `json:"selected"`
}

// maxAmended is how many messages one command changes.
const maxAmended = 1_000_000

// choose reads the IDs before anything is changed, so that a change does not
// bring a message into the choice again. What a filter chooses is changed oldest
// first: moved messages stay in the order in which they came.
func (m *messageBulk) choose(ctx context.Context, o *office.Office, args []string, f nixie.Filter) ([]nixie.ID, error) {
	if len(args) > 0 {
		return o.MessageIDs(ctx, args)
	}
	var ids []nixie.ID
	for r, err := range o.AllMessages(ctx, f) {
		if err != nil {
			return nil, err
		}
		if len(ids) == maxAmended {
			return nil, nixie.Errorf(nixie.CodeLimit, "filter matches more than %d messages, the limit: narrow it", maxAmended)
		}
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids)
	return ids, nil
}

func (m *messageBulk) columns() []column[office.AmendView] {
	type v = office.AmendView
	return []column[v]{
		{name: "id"}, {name: "key", kind: flex}, {name: "queue", kind: flex}, {name: "stream", show: asWide, kind: flex},
		{name: "state", paint: func(a *v) ink { return stateInk(a.State) }},
		{name: "due_in", cell: func(a *v) string { return until(m.Now(), a.NotBefore) }},
		{name: "outcome", kind: flex, cell: func(a *v) string { return cmp.Or(a.Error, m.done) }, paint: func(a *v) ink {
			return cmp.Or(inkIf(a.Error != "", red), green)
		}},
	}
}
