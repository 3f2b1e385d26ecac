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
	verb     store.ChangeVerb
	done     string
	required bool // a reason is needed
	flags    func(*messageBulk, *pflag.FlagSet)
	check    func(*messageBulk) error
}

var messageVerbs = []messageVerb{
	{verb: store.Cancel, done: "canceled", required: true},
	{verb: store.Hold, done: "held", required: true, check: (*messageBulk).checkWhat, flags: func(m *messageBulk, fs *pflag.FlagSet) {
		fs.StringVar(&m.what, "as", "", "what the letter says went wrong: poison, validation …; default --reason if it is such a word")
		fs.BoolVar(&m.request.Free, "release-followers", false, "followers in its stream do not wait for it")
	}},
	{verb: store.RetryNow, done: "due now"},
	{verb: store.ResetAttempts, done: "reset"},
	{verb: store.Reschedule, done: "rescheduled", check: (*messageBulk).checkTime, flags: func(m *messageBulk, fs *pflag.FlagSet) {
		fs.StringVar(&m.at, "at", "", "when, in RFC 3339")
		fs.StringVar(&m.in, "in", "", "after how long, such as 90m or 2d")
	}},
	{verb: store.Move, done: "moved", check: (*messageBulk).checkQueue, flags: func(m *messageBulk, fs *pflag.FlagSet) {
		fs.StringVar(&m.request.Queue, "to", "", "queue to move to (required)")
	}},
	{verb: store.MayPass, done: "marked"},
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
	cmd := g.command(g.described("message "+string(v.verb), cobra.ArbitraryArgs), m.run, &m.choice)
	m.register(cmd.Flags(), "reason", "in the audit")
	if m.flags != nil {
		m.flags(m, cmd.Flags())
	}
	return cmd
}

func (m *messageBulk) run(ctx context.Context, args []string) error {
	m.yes = m.yes || len(args) > 0 // IDs need no question
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
			return plan{n: int64(len(ids)), view: amendPlan{true, len(ids)}, ask: func(w io.Writer) {
				fmt.Fprintf(w, "%s would be %s\n", plural(int64(len(ids)), "message"), m.done)
			}}, nil
		}, func() error { return m.amend(ctx, o, ids) })
	})
}

func (m *messageBulk) checkQueue() error {
	if m.request.Queue == "" {
		return usagef("--to is empty: name the queue to move to")
	}
	return nil
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

// amendPlan is the JSON of --dry-run.
type amendPlan struct {
	DryRun   bool `json:"dry_run"`
	Selected int  `json:"selected"`
}

// maxAmended limits the messages that one command changes.
const maxAmended = 1_000_000

// choose reads the IDs before the first change, because a change may bring a message into the
// filter again. It returns the oldest first, so that moved messages keep their order.
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
		{name: "id", kind: ids}, {name: "key", kind: flex}, {name: "queue", kind: flex}, {name: "stream", show: asWide, kind: flex},
		{name: "state", paint: func(a *v) ink { return stateInk(a.State) }},
		{name: "due_in", cell: func(a *v) string { return until(m.Now(), a.NotBefore) }},
		{name: "outcome", kind: flex, cell: func(a *v) string { return cmp.Or(a.Error, m.done) }, paint: func(a *v) ink {
			return cmp.Or(inkIf(a.Error != "", red), green)
		}},
	}
}
