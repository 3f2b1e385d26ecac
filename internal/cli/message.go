package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newMessage(g *globals) *cobra.Command {
	return family("message", "Look at messages, whatever became of them",
		"An ID is that of the message or of its letter, or the message's key (the id of an item).",
		newMessageList(g), newMessageShow(g), newMessageLog(g))
}

func newMessageList(g *globals) *cobra.Command {
	var filter filterFlag
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List messages, newest first",
		Example: `  nixie message list --filter 'queue:orders state:queued attempts:>0'
  nixie message list --filter 'state:leased' -o wide
  nixie message list --all -o csv > messages.csv`,
		Args: noArgs,
	}
	filter.register(cmd.Flags())
	page.register(cmd.Flags())
	var f nixie.Filter
	check := func() (err error) {
		if err := page.check(); err != nil {
			return err
		}
		if f, err = filter.parse(g); err != nil {
			return err
		}
		return g.listFormat()
	}
	cmd.RunE = g.with(check, func(ctx context.Context, o *office.Office, _ []string) error {
		return list(g, &page, "messages", messageColumns(g.Now()), viewRow, o.AllMessages(ctx, f),
			func(p store.Page) ([]store.Record, string, error) { return o.Messages(ctx, f, p) })
	})
	return cmd
}

func viewRow(r *store.Record) office.MessageView {
	v := office.ViewMessage(&r.Message)
	v.Damage = r.Damage
	return v
}

func messageColumns(now time.Time) []column[office.MessageView] {
	type v = office.MessageView
	text := func(name, show string, cell func(*v) string) column[v] {
		return column[v]{name: name, show: show, cell: cell}
	}
	count := func(name, show string, n func(*v) int) column[v] {
		return column[v]{name: name, show: show, cell: func(m *v) string { return strconv.Itoa(n(m)) }, kind: number}
	}
	return []column[v]{
		text("id", asTable, func(m *v) string { return m.ID.String() }),
		{name: "key", show: asTable, cell: func(m *v) string { return m.Key }, kind: flex},
		{name: "queue", show: asTable, cell: func(m *v) string { return m.Queue }, kind: flex},
		{name: "type", show: asWide, cell: func(m *v) string { return m.Type }, kind: flex},
		{name: "stream", show: asWide, cell: func(m *v) string { return m.Stream }, kind: flex},
		text("state", asTable, func(m *v) string { return string(m.State) + damaged(m.Damage) }),
		count("attempts", asTable, func(m *v) int { return m.Attempts }),
		count("deliveries", asCSV, func(m *v) int { return m.Deliveries }),
		count("crashes", asCSV, func(m *v) int { return m.Crashes }),
		count("generation", asCSV, func(m *v) int { return m.Generation }),
		count("redrives", asWide, func(m *v) int { return m.Redrives }),
		count("priority", asWide, func(m *v) int { return m.Priority }),
		text("age", asTable, func(m *v) string { return age(now.Sub(m.EnqueuedAt.Time)) }),
		text("enqueued_at", asCSV, func(m *v) string { return m.EnqueuedAt.String() }),
		text("not_before", asCSV, func(m *v) string { return m.NotBefore.String() }),
		text("ended_at", asCSV, func(m *v) string { return m.EndedAt.String() }),
		{name: "lease_owner", show: asWide, cell: func(m *v) string { return m.LeaseOwner }, kind: flex},
		{name: "last_failure", show: asTable, cell: func(m *v) string { return m.LastFailure }, kind: flex},
	}
}

func newMessageShow(g *globals) *cobra.Command {
	var veil veil
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a message, its body and what went wrong so far",
		Long: `Shows a message with its body, headers and failures. Secrets in them are hidden
unless --unmask; the output says where that was done.`,
		Example: `  nixie message show order-4711
  nixie message show order-4711 --unmask -o json | jq -r .body`,
		Args: oneArg("ID"),
	}
	veil.register(cmd.Flags())
	cmd.RunE = g.with(g.objectFormat, func(ctx context.Context, o *office.Office, args []string) error {
		r, err := o.Message(ctx, args[0])
		if err == nil {
			err = veil.over(g)
		}
		if err != nil {
			return err
		}
		veil.message(&r.Message, r.History)
		v := maskedMessage{MessageView: viewRow(&r)}
		v.Headers, v.History = r.Headers, office.ViewHistory(r.History)
		veil.body(&v.MessageView)
		v.Masked = veil.hid
		return g.object(v, func(w io.Writer) error {
			g.printMessage(w, &r, &veil)
			return nil
		})
	})
	return cmd
}

func (g *globals) printMessage(w io.Writer, r *store.Record, veil *veil) {
	at := func(t time.Time) string { return strings.TrimPrefix(clock(office.Moment{Time: t}), "-") }
	f := newFacts(w)
	f.add("message", r.ID.String())
	f.add("state", string(r.State)+damaged(r.Damage))
	f.add("key", r.Key)
	f.add("queue", r.Queue)
	f.add("type", r.Type)
	f.add("stream", r.Stream)
	f.add("dedupe key", r.DedupeKey)
	f.add("counts", fmt.Sprintf("life %d: %s, %s, %d crashed; %s", r.Generation,
		plural(int64(r.Attempts), "attempt"), plural(int64(r.Deliveries), "delivery"), r.Crashes, plural(int64(r.Redrives), "redrive")))
	f.add("steps done", strings.Join(r.Steps, ", "))
	f.add("enqueued", at(r.EnqueuedAt))
	f.add("not before", at(r.NotBefore))
	f.add("expires", at(r.ExpiresAt))
	f.add("received", at(r.FirstReceivedAt))
	f.add("ended", at(r.EndedAt))
	if r.LeaseOwner != "" {
		f.add("leased by", r.LeaseOwner+" until "+at(r.LeaseExpiresAt))
	}
	for _, h := range r.Headers {
		f.add("header", h.Name+": "+h.Value)
	}
	for _, d := range r.Damage {
		f.add("DAMAGED", d)
	}
	f.end()
	g.printHistory(w, r.History, r.HistoryDropped)
	g.printBody(w, r.Body, veil)
	if r.State == nixie.Dead {
		fmt.Fprintf(w, "\nNext:\n  %s\n", g.typed("dlq", "show", r.ID.String()))
	}
}

func newMessageLog(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "log ID",
		Short: "Tell the life of a message in the order of time",
		Long: `Tells when a message was enqueued, each failure, its death, what was done with its
letter by whom and why, and its end.`,
		Example: `  nixie message log order-4711
  nixie message log order-4711 -o jsonl`,
		Args: oneArg("ID"),
		RunE: g.with(g.listFormat, func(ctx context.Context, o *office.Office, args []string) error {
			_, entries, err := o.Log(ctx, args[0])
			if err != nil {
				return err
			}
			out := newListing(g, logColumns())
			for _, e := range entries {
				if err := out.add(e); err != nil {
					return err
				}
			}
			return out.close()
		}),
	}
}

func logColumns() []column[office.LogEntry] {
	type v = office.LogEntry
	return []column[v]{
		{name: "at", show: asTable, cell: func(e *v) string { return e.At.String() }},
		{name: "what", show: asTable, cell: func(e *v) string { return e.What }},
		{name: "actor", show: asTable, cell: func(e *v) string { return e.Actor }},
		{name: "detail", show: asTable, cell: func(e *v) string { return e.Detail }, kind: flex},
	}
}
