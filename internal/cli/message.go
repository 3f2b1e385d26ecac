package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newMessage(g *globals) *cobra.Command {
	cmd := g.family("message", newMessageList(g), newMessageShow(g), newMessageLog(g))
	for _, v := range messageVerbs {
		cmd.AddCommand(newMessageBulk(g, v))
	}
	return cmd
}

func newMessageList(g *globals) *cobra.Command {
	var choice filterFlag
	var page pageFlags
	return g.inOffice(g.described("message list"), func(ctx context.Context, o *office.Office, _ []string) error {
		return list(g, &page, "messages", messageColumns(g.Now()), viewRow, o.AllMessages(ctx, choice.filter),
			func(p store.Page) ([]store.Record, string, error) { return o.Messages(ctx, choice.filter, p) })
	}, &choice, &page)
}

func viewRow(r *store.Record) office.MessageView {
	v := office.ViewMessage(&r.Message)
	v.Damage = r.Damage
	return v
}

// messageColumns are the columns of a list of messages.
func messageColumns(now time.Time) []column[office.MessageView] {
	type v = office.MessageView
	return []column[v]{
		{name: "id", kind: ids}, {name: "key", kind: flex, spare: 1}, {name: "queue", kind: flex, spare: 4},
		{name: "type", show: asWide, kind: flex},
		{name: "stream", show: asWide, kind: flex},
		{name: "state", cell: func(m *v) string { return string(m.State) + damaged(m.Damage) },
			paint: func(m *v) ink { return stateInk(m.State) }},
		{name: "attempts", spare: 3}, {name: "redrives", show: asWide}, {name: "priority", show: asWide},
		{name: "age", spare: 2, cell: func(m *v) string { return age(now.Sub(m.EnqueuedAt.Time)) }},
		{name: "lease_owner", show: asWide, kind: flex}, {name: "last_failure", kind: flex},
	}
}

func stateInk(s nixie.State) ink {
	switch s {
	case nixie.Dead:
		return red
	case nixie.Leased:
		return yellow
	case nixie.Succeeded:
		return green
	case nixie.Queued:
		return ""
	}
	return faint
}

func newMessageShow(g *globals) *cobra.Command {
	var masking masking
	whole := false
	cmd := g.inOffice(g.described("message show", oneArg("ID")), func(ctx context.Context, o *office.Office, args []string) error {
		g.lengthen(whole)
		r, err := o.Message(ctx, args[0])
		if err != nil {
			return err
		}
		masking.message(&r.Message, r.History)
		v := maskedMessage{MessageView: viewRow(&r)}
		v.Headers, v.History = r.Headers, office.ViewHistory(r.History)
		masking.body(&v.Bytes)
		v.Masked = masking.hidden
		return g.object(v, func(w io.Writer) { g.printMessage(w, &r, &masking) })
	}, &masking)
	wholeVar(cmd, &whole)
	return cmd
}

func (g *globals) printMessage(w io.Writer, r *store.Record, masking *masking) {
	at := func(t time.Time) string { return strings.TrimPrefix(moment(t), "-") }
	var f facts
	f.add("message", r.ID.String(), "state", string(r.State)+damaged(r.Damage), "key", r.Key, "queue", r.Queue, "type", r.Type,
		"stream", r.Stream+marks(r), "dedupe key", r.DedupeKey, "counts", countsOfMessage(&r.Message),
		"steps done", strings.Join(r.Steps, ", "),
		"enqueued", at(r.EnqueuedAt), "redriven", at(r.RedrivenAt), "not before", at(r.NotBefore), "expires", at(r.ExpiresAt),
		"received", at(r.FirstReceivedAt), "ended", at(r.EndedAt))
	if r.LeaseOwner != "" {
		f.add("leased by", r.LeaseOwner+" until "+at(r.LeaseExpiresAt))
	}
	f.addMore(r.Headers, r.Damage)
	f.print(w)
	g.printHistory(w, r.History, r.HistoryDropped)
	g.printBody(w, "Body", r.Body, masking)
	masking.sayHidden(w)
	if r.State == nixie.Dead {
		fmt.Fprintf(w, "\nNext:\n  %s\n", g.typed("dlq", "show", r.ID.String()))
	}
}

// addMore adds headers and damage.
func (f *facts) addMore(headers []nixie.Header, damage []string) {
	for _, h := range headers {
		f.add("header", h.Name+": "+h.Value)
	}
	for _, d := range damage {
		f.add("DAMAGED", d)
	}
}

// countsOfMessage writes how often a message was tried.
func countsOfMessage(m *nixie.Message) string {
	return fmt.Sprintf("generation %d: %s, %s, %d crashed; %s", m.Generation, attempts(office.ViewMessage(m).Attempts),
		plural(int64(m.Deliveries), "delivery"), m.Crashes, plural(int64(m.Redrives), "redrive"))
}

// marks writes what is special about the position of a message in its stream.
func marks(r *store.Record) string {
	return either(r.MayPass, " (may pass)", "") + either(r.OrderGap, " (out of order)", "")
}

func newMessageLog(g *globals) *cobra.Command {
	var choice filterFlag
	var page pageFlags
	described := g.described("message log", arguments(0, 1, "wants one ID or none, has %[2]d: see %[1]s --help"))
	return g.inOffice(described, func(ctx context.Context, o *office.Office, args []string) error {
		if len(args) == 0 {
			itself := func(e *office.EndedView) office.EndedView { return *e }
			return list(g, &page, "ends", endedColumns(), itself, o.AllEnded(ctx, choice.filter),
				func(p store.Page) ([]office.EndedView, string, error) { return o.Ended(ctx, choice.filter, p) })
		}
		if choice.text != "" || page != (pageFlags{limit: defaultLimit}) {
			return usagef("message log takes an ID, or flags that choose from all messages: give one of them")
		}
		_, entries, err := o.Log(ctx, args[0])
		return listed(g, "", []column[office.LogEntry]{
			{name: "at"}, {name: "what"}, {name: "actor"}, {name: "detail", kind: flex},
		})(entries, err)
	}, &choice, &page)
}

// endedColumns are the columns of a list of what ended.
func endedColumns() []column[office.EndedView] {
	type v = office.EndedView
	return []column[v]{
		{name: "at"}, {name: "message", kind: ids}, {name: "key", kind: flex, spare: 1}, {name: "queue", kind: flex, spare: 2},
		{name: "state", paint: func(e *v) ink { return stateInk(e.State) }}, {name: "error_type", kind: flex, spare: 3},
		{name: "error", kind: flex},
	}
}
