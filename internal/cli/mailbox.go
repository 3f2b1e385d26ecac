package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
)

func newMailbox(g *globals) *cobra.Command {
	return g.family("mailbox", newMailboxList(g), newMailboxStats(g), newMailboxShow(g), newMailboxPurge(g),
		newMailboxSend(g), newMailboxReceive(g), newMailboxReply(g))
}

// mailboxes are those of the server at a URL, which may name one.
type mailboxes struct {
	*app.Mailboxes
	name string
}

// inMailboxes completes a command on the server of its argument. Named commands want the name of a
// mailbox in it.
func (g *globals) inMailboxes(path string, named bool, do func(context.Context, mailboxes) error, groups ...flagGroup) *cobra.Command {
	return g.command(g.described(path, oneArg("URL")), func(ctx context.Context, args []string) error {
		return g.onServer(ctx, args[0], named, do)
	}, groups...)
}

// onServer connects to the server at a URL.
func (g *globals) onServer(ctx context.Context, url string, named bool, do func(context.Context, mailboxes) error) error {
	at, err := g.channelAt(url)
	switch {
	case err != nil:
		return err
	case named && at.Name == "":
		return usagef("no mailbox: name it after the host, as in %s/orders", at.Shown)
	case !named && at.Name != "":
		return usagef("%s names a mailbox, and all of the server are listed: leave the name out", at.Shown)
	}
	all, err := at.Mailboxes()
	if err != nil {
		return err
	}
	defer all.Close()
	return do(ctx, mailboxes{all, at.Name})
}

// mailboxView shows the counts of a mailbox.
type mailboxView struct {
	Mailbox    string `json:"mailbox"`
	Visible    int64  `json:"visible"`
	Leased     int64  `json:"leased"`
	Delayed    int64  `json:"delayed"`
	Sent       int64  `json:"sent"`         // ever
	Expired    int64  `json:"expired"`      // removed by the mailbox, because they were too old
	Missing    int64  `json:"missing"`      // whose bodies were deleted by hand
	OldestAgeS *int64 `json:"oldest_age_s"` // of the first visible record
	Retention  string `json:"retention"`    // a duration, or forever
	Drops      bool   `json:"drops"`        // the mailbox removes what is too old; else its receiver decides
}

// view looks at a mailbox.
func (m *mailboxes) view(ctx context.Context, name string) (mailboxView, error) {
	s, err := m.Look(ctx, name)
	v := mailboxView{
		Mailbox: name, Visible: s.Visible, Leased: s.Leased, Delayed: s.Delayed, Sent: s.Sent, Expired: s.Expired, Missing: s.Missing,
		Retention: "forever", Drops: s.Retention.Drop,
	}
	if s.Retention.Keep > 0 {
		v.Retention = s.Retention.Keep.String()
	}
	if s.Oldest >= 0 {
		seconds := int64(s.Oldest / time.Second)
		v.OldestAgeS = &seconds
	}
	return v, err
}

func newMailboxList(g *globals) *cobra.Command {
	return g.inMailboxes("mailbox list", false, func(ctx context.Context, m mailboxes) error {
		names, err := m.List(ctx)
		if err != nil {
			return err
		}
		views := make([]mailboxView, 0, len(names))
		for _, name := range names {
			v, err := m.view(ctx, name)
			switch {
			case nixie.CodeOf(err) == nixie.CodeNotFound: // it was deleted meanwhile
				continue
			case err != nil:
				return err
			}
			views = append(views, v)
		}
		return listed(g, "mailboxes", []column[mailboxView]{
			{name: "mailbox", kind: flex}, {name: "visible"}, {name: "leased"}, {name: "delayed"}, {name: "sent"},
			{name: "expired", show: asWide}, {name: "missing", show: asWide},
			{name: "oldest", cell: func(v *mailboxView) string { return ageOr(v.OldestAgeS) }},
			{name: "retention"}, {name: "drops", show: asWide},
		})(views, nil)
	})
}

func newMailboxStats(g *globals) *cobra.Command {
	return g.counted("mailbox stats", func(_ context.Context, _ string, look func() (mailboxView, error),
		_ func(int64, func(int64)) (int64, error),
	) error {
		return one(g, printMailbox)(look())
	})
}

func printMailbox(w io.Writer, v *mailboxView) {
	n := numeral
	var f facts
	f.add("mailbox", v.Mailbox, "visible", n(v.Visible), "leased", n(v.Leased), "delayed", n(v.Delayed), "sent", n(v.Sent),
		"expired", n(v.Expired), "missing", n(v.Missing), "oldest", ageOr(v.OldestAgeS), "kept", v.Retention, "drops", yesNo(v.Drops))
	f.print(w)
}

// recordView shows a record of a mailbox.
type recordView struct {
	ID         string           `json:"id"`
	Key        string           `json:"key"`
	SentAt     office.Timestamp `json:"sent_at"`
	Deliveries int              `json:"deliveries"`
	Crashes    int              `json:"crashes"`
	Headers    []nixie.Header   `json:"headers"`
	office.Bytes
}

// mostShown bounds --limit.
const mostShown = 1000

func newMailboxShow(g *globals) *cobra.Command {
	limit := 20
	cmd := g.inMailboxes("mailbox show", true, func(ctx context.Context, m mailboxes) error {
		s, err := m.Look(ctx, m.name)
		if err != nil {
			return err
		}
		records, err := m.Browse(ctx, m.name, int(max(s.Visible-int64(limit), 0)), limit)
		views := make([]recordView, len(records))
		for i, r := range records {
			v := &views[i]
			*v = recordView{
				ID: r.MessageID, Key: string(r.Key), SentAt: office.Timestamp{Time: r.Timestamp}, Deliveries: r.PriorDeliveries,
				Crashes: r.Crashes, Headers: []nixie.Header{}, Bytes: office.ViewBytes(r.Value),
			}
			for _, h := range r.Headers {
				v.Headers = append(v.Headers, nixie.Header{Name: h.Name, Value: string(h.Value)})
			}
		}
		return listed(g, "records", []column[recordView]{
			{name: "id"}, {name: "key", kind: flex}, {name: "deliveries"}, {name: "crashes", show: asWide},
			{name: "age", cell: func(v *recordView) string {
				if v.SentAt.IsZero() {
					return "-" // the record does not tell
				}
				return age(g.Now().Sub(v.SentAt.Time))
			}},
			{name: "body", kind: flex, cell: func(v *recordView) string { return bodyOr(v.Text) }},
		})(views, err)
	}, checked(func() error {
		if limit < 1 || limit > mostShown {
			return usagef("--limit is %d: give a number from 1 to %d", limit, mostShown)
		}
		return nil
	}))
	cmd.Flags().IntVar(&limit, "limit", limit, "most records; those that were sent last")
	return cmd
}

// mailboxPurge runs mailbox purge.
type mailboxPurge struct {
	bulk
	max int64
}

func (p *mailboxPurge) register(fs *pflag.FlagSet) {
	fs.Int64Var(&p.max, "max", 0, "most records; 0 is no limit")
	fs.BoolVar(&p.dry, "dry-run", false, "show what would be done and do nothing")
	fs.BoolVarP(&p.yes, "yes", "y", false, "do not ask; needed when not on a terminal")
}

func (p *mailboxPurge) read(*globals) error {
	if p.max < 0 {
		return usagef("--max is %d: give a positive number, or 0 for no limit", p.max)
	}
	return p.canAsk()
}

// mailboxPurged counts what a purge removed and left.
type mailboxPurged struct {
	Mailbox string `json:"mailbox"`
	Purged  int64  `json:"purged"`
	Leased  int64  `json:"leased"` // stay with their receivers
}

func newMailboxPurge(g *globals) *cobra.Command {
	p := &mailboxPurge{bulk: bulk{globals: g}}
	return g.counted("mailbox purge", func(_ context.Context, name string, look func() (mailboxView, error),
		purge func(int64, func(int64)) (int64, error),
	) error {
		s, err := look()
		if err != nil {
			return err
		}
		most := min(cmp.Or(p.max, math.MaxInt64), s.Visible+s.Delayed) // not what is sent from now on
		v := mailboxPurged{name, most, s.Leased}
		return p.do(func() (plan, error) {
			return plan{v.Purged, func(w io.Writer) { v.print(w, "would be removed for good") }, v, nil}, nil
		}, func() error {
			v.Purged, err = purge(most, func(n int64) { g.status("%d removed", n) })
			g.status("")
			if err != nil {
				g.say("%s removed before the failure", plural(v.Purged, "record"))
			}
			return one(g, func(w io.Writer, v *mailboxPurged) { v.print(w, "removed") })(v, err)
		})
	}, p)
}

func (v *mailboxPurged) print(w io.Writer, done string) {
	fmt.Fprintf(w, "%s of mailbox %s %s", plural(v.Purged, "record"), escapeLine(v.Mailbox), done)
	if v.Leased > 0 {
		fmt.Fprintf(w, "; %d leased stay", v.Leased)
	}
	fmt.Fprintln(w)
}
