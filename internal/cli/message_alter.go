package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// altering is a verb that changes messages: cancel, hold, retry-now …
type altering struct {
	*globals
	office.AmendRequest
	done string

	at, in   string
	what     string
	filter   filterFlag
	dry, yes bool
}

// newAlter makes the command of a verb.
func newAlter(g *globals, verb store.ChangeVerb, done, short, long, example string) (*cobra.Command, *altering) {
	a := &altering{globals: g, AmendRequest: office.AmendRequest{Verb: verb}, done: done}
	cmd := &cobra.Command{
		Use:     string(verb) + " [ID…]",
		Short:   short,
		Long:    long + "\n\nBy IDs or keys, or by --filter; without state: in the filter, queued ones are meant.",
		Example: example,
		RunE:    a.run,
	}
	fs := cmd.Flags()
	a.filter.register(fs)
	required := ""
	if verb == store.Hold || verb == store.Cancel {
		required = " (required)"
	}
	fs.StringVar(&a.AmendRequest.Reason, "reason", "", "why; recorded in the audit"+required)
	fs.BoolVar(&a.dry, "dry-run", false, "say how many would be changed, and change nothing")
	fs.BoolVarP(&a.yes, "yes", "y", false, "do not ask before a --filter is used; needed when not on a terminal")
	return cmd, a
}

func newMessageCancel(g *globals) *cobra.Command {
	cmd, _ := newAlter(g, store.Cancel, "canceled", "End messages that need not be done any more",
		`Ends messages that are queued or leased. The lease of one that is at work is void:
its handler is told to stop, and what it does then is not recorded as a success.`,
		`  nixie message cancel order-4711 --reason 'customer cancelled'
  nixie message cancel --filter 'queue:test' --reason 'test data' --dry-run`)
	return cmd
}

func newMessageHold(g *globals) *cobra.Command {
	cmd, a := newAlter(g, store.Hold, "held", "Take queued messages out, for a person to look at",
		`Puts queued messages into the dead letter office for review, with a letter that
says who did it and why. In a strict stream the followers go on waiting, unless
--release-followers lets them go.`,
		`  nixie message hold order-4711 --reason poison --release-followers
  nixie message hold --filter 'queue:orders type:refund' --reason 'ask finance' --yes`)
	cmd.Flags().StringVar(&a.what, "as", "", "what the letter says went wrong: poison, validation …; default --reason if it is such a word")
	cmd.Flags().BoolVar(&a.Free, "release-followers", false, "followers in its stream do not wait for it")
	return cmd
}

func newMessageRetryNow(g *globals) *cobra.Command {
	cmd, _ := newAlter(g, store.RetryNow, "due now", "Make waiting messages due now", "Lets scheduled messages and those that wait for a retry go at once.",
		`  nixie message retry-now order-4711
  nixie message retry-now --filter 'queue:orders attempts:>0' --reason 'db is up' --yes`)
	return cmd
}

func newMessageReset(g *globals) *cobra.Command {
	cmd, _ := newAlter(g, store.ResetAttempts, "reset", "Give messages all their attempts again",
		"Sets attempts, deliveries and crashes of queued messages to 0. History and steps stay.",
		`  nixie message reset-attempts order-4711 --reason 'the outage ate them'`)
	return cmd
}

func newMessageReschedule(g *globals) *cobra.Command {
	cmd, a := newAlter(g, store.Reschedule, "rescheduled", "Make messages due at another time", "Sets when queued messages are due. The past is now.",
		`  nixie message reschedule order-4711 --at 2026-05-05T06:00:00Z
  nixie message reschedule --filter 'queue:mail' --in 2h --yes`)
	cmd.Flags().StringVar(&a.at, "at", "", "when, in RFC 3339")
	cmd.Flags().StringVar(&a.in, "in", "", "after how long, such as 90m or 2d")
	return cmd
}

func newMessageMove(g *globals) *cobra.Command {
	cmd, a := newAlter(g, store.Move, "moved", "Move messages to another queue",
		`Puts queued messages at the end of another queue, with their attempts and history.
A message that was redriven stays with its letter in its queue.`,
		`  nixie message move order-4711 --to orders-slow
  nixie message move --filter 'queue:orders type:report' --to reports --yes`)
	cmd.Flags().StringVar(&a.Queue, "to", "", "queue to move to (required)")
	return cmd
}

func newMessageMayPass(g *globals) *cobra.Command {
	cmd, _ := newAlter(g, store.MayPass, "marked", "Let messages pass the head of their stream",
		`Marks queued messages of a strict stream, so that they may go before others of the
stream that wait for a retry or are dead, never before one that is at work. They
are handed out with a mark that says they are out of order.`,
		`  nixie message may-pass order-4712 --reason 'does not depend on order-4711'`)
	return cmd
}

func (a *altering) run(cmd *cobra.Command, args []string) error {
	if err := a.filter.read(a.globals); err != nil {
		return err
	}
	f := a.filter.filter
	if err := a.check(args, f); err != nil {
		return err
	}
	return a.visit(func(o *office.Office) error { return a.alter(cmd.Context(), o, args, office.Amendable(f)) })
}

// check finds everything that can be wrong before the store is opened.
func (a *altering) check(args []string, f nixie.Filter) error {
	switch {
	case len(args) == 0 && f.IsZero():
		return usagef("nothing is chosen: give IDs or keys, or --filter")
	case len(args) > 0 && !f.IsZero():
		return usagef("choose by IDs or by --filter, not by both")
	case a.Reason == "" && !a.dry && (a.Verb == store.Hold || a.Verb == store.Cancel):
		return usagef("--reason is empty: say why, it is recorded in the audit")
	case !f.IsZero() && !a.yes && !a.dry && !(a.InTTY && a.ErrTTY):
		return usagef("nobody can be asked here: give --yes, or --dry-run to see how many would be changed")
	case a.Verb == store.Move && a.Queue == "":
		return usagef("--to is empty: name the queue to move to")
	}
	if a.Verb == store.Hold {
		return a.checkWhat()
	}
	if a.Verb == store.Reschedule {
		return a.checkTime()
	}
	return nil
}

func (a *altering) checkWhat() error {
	given := a.what
	if given == "" && slices.Contains(nixie.Reasons(), nixie.Reason(a.Reason)) {
		given = a.Reason
	}
	if given != "" && !slices.Contains(nixie.Reasons(), nixie.Reason(given)) {
		return usagef("--as is %q: give one of %v", given, nixie.Reasons())
	}
	a.What = nixie.Reason(given)
	return nil
}

func (a *altering) checkTime() error {
	switch {
	case (a.at == "") == (a.in == ""):
		return usagef("give one of --at and --in: when the messages are due")
	case a.at != "":
		at, err := time.Parse(time.RFC3339, a.at)
		if err != nil {
			return usagef("--at is %q: give a time such as 2026-05-05T06:00:00Z", a.at)
		}
		a.At = at
		return nil
	}
	in, err := filter.ParseDuration(a.in)
	if err != nil || in < 0 || in > nixie.MaxDelay {
		return usagef("--in is %q: give a span such as 90m or 2d, at most %s", a.in, nixie.MaxDelay)
	}
	a.At = a.Now().Add(in)
	return nil
}

func (a *altering) alter(ctx context.Context, o *office.Office, args []string, f nixie.Filter) error {
	ids, err := a.choose(ctx, o, args, f)
	if err != nil {
		return err
	}
	if a.dry {
		return a.object(alterPlan{true, len(ids)}, func(w io.Writer) {
			fmt.Fprintf(w, "%s would be %s\n", plural(int64(len(ids)), "message"), a.done)
		})
	}
	if len(args) == 0 && len(ids) > 0 && !a.yes {
		if err := a.ask(len(ids)); err != nil {
			return err
		}
	}
	refused := 0
	out := newListing(a.globals, alterationColumns(a.globals, a.done))
	err = o.Amend(ctx, ids, &a.AmendRequest, func(v office.AmendView) error {
		if v.Error != "" {
			refused++
		}
		return out.add(v)
	})
	if err := errors.Join(err, a.ended(out.close(), out.n, "messages match")); err != nil {
		return err
	}
	if refused > 0 {
		return exit(ExitPartly)
	}
	return nil
}

// alterPlan is the JSON of --dry-run.
type alterPlan struct {
	DryRun   bool `json:"dry_run"`
	Selected int  `json:"selected"`
}

// maxAltered is how many messages one command changes.
const maxAltered = 1_000_000

// choose reads the IDs before anything is changed, so that a change does not
// bring a message into the choice again. What a filter chooses is changed oldest
// first: moved messages stay in the order in which they came.
func (a *altering) choose(ctx context.Context, o *office.Office, args []string, f nixie.Filter) ([]nixie.ID, error) {
	if len(args) > 0 {
		return o.MessageIDs(ctx, args)
	}
	var ids []nixie.ID
	for r, err := range o.AllMessages(ctx, f) {
		if err != nil {
			return nil, err
		}
		if len(ids) == maxAltered {
			return nil, nixie.Errorf(nixie.CodeLimit, "filter matches more than %d messages, the limit: narrow it", maxAltered)
		}
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids)
	return ids, nil
}

func (a *altering) ask(n int) error {
	fmt.Fprintf(a.Err, "%s would be %s\n", plural(int64(n), "message"), a.done)
	return a.confirm()
}

func alterationColumns(g *globals, done string) []column[office.AmendView] {
	type v = office.AmendView
	return []column[v]{
		{name: "id"},
		{name: "key", kind: flex},
		{name: "queue", kind: flex},
		{name: "stream", show: asWide, kind: flex},
		{name: "state", paint: func(m *v) ink { return stateInk(m.State) }},
		{name: "due_in", cell: func(m *v) string { return until(g.Now(), m.NotBefore) }},
		{name: "outcome", kind: flex, cell: func(m *v) string {
			if m.Error != "" {
				return m.Error
			}
			return done
		}, paint: func(m *v) ink {
			if m.Error != "" {
				return red
			}
			return green
		}},
	}
}
