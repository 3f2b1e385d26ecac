package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newAudit(g *globals) *cobra.Command {
	return g.family("audit", newAuditList(g), newAuditVerify(g), newAuditExport(g))
}

// auditFlags choose audit entries.
type auditFlags struct {
	queuesFlag
	events              []string
	actor, since, until string
	filter              store.AuditFilter
}

func (a *auditFlags) register(fs *pflag.FlagSet) {
	a.queuesFlag.register(fs)
	fs.StringVar(&a.actor, "actor", "", "done by this actor; nixie stands for verdicts")
	fs.BoolVar(&a.filter.People, "people", false, "done by people and programs, not by verdicts")
	fs.StringSliceVar(&a.events, "event", nil, "these events, such as redrive, discard, configure, purge")
	fs.StringVar(&a.since, "since", "", "not before: 2026-01-31, 2026-01-31T10:00:00Z or now-2h")
	fs.StringVar(&a.until, "until", "", "before")
}

func (a *auditFlags) read(g *globals) error {
	f := &a.filter
	f.Queues, f.Actor = a.names, a.actor
	for _, end := range [...]struct {
		flag, text string
		into       *time.Time
	}{{"since", a.since, &f.Since}, {"until", a.until, &f.Until}} {
		var err error
		if *end.into, err = office.ParseMoment(end.text, g.Now()); err != nil {
			return usagef("--%s is %v", end.flag, err)
		}
	}
	for _, e := range a.events {
		if !slices.Contains(store.Events(), store.Event(e)) {
			return usagef("--event %q: there are %s", e, strings.Join(eventNames(), ", "))
		}
		f.Events = append(f.Events, store.Event(e))
	}
	return nil
}

func eventNames() []string {
	var names []string
	for _, e := range store.Events() {
		names = append(names, string(e))
	}
	return names
}

func newAuditList(g *globals) *cobra.Command {
	var choice auditFlags
	var page pageFlags
	cmd := g.inOffice(g.described("audit list"), func(ctx context.Context, o *office.Office, _ []string) error {
		return list(g, &page, "entries", auditColumns(), office.ViewAudit, o.AllAudit(ctx, choice.filter),
			func(p store.Page) ([]store.AuditEntry, string, error) { return o.Audit(ctx, choice.filter, p) })
	}, &page, &choice)
	cmd.Flags().BoolVar(&choice.filter.Oldest, "oldest", false, "oldest first")
	return cmd
}

func auditColumns() []column[office.AuditView] {
	return []column[office.AuditView]{
		{name: "at"},
		{name: "queue", kind: flex}, {name: "number", show: asWide}, {name: "event"}, {name: "actor", kind: flex},
		{name: "subject", kind: ids},
		{name: "reason", kind: flex}, {name: "operation", show: asWide}, {name: "hash", show: asWide},
	}
}

func newAuditVerify(g *globals) *cobra.Command {
	type v = office.ChainView
	var queues queuesFlag
	return g.inOffice(g.described("audit verify"), func(ctx context.Context, o *office.Office, _ []string) error {
		chains, err := o.VerifyAudit(ctx, queues.names)
		if err := listed(g, "queues", []column[v]{
			{name: "queue", kind: flex}, {name: "entries"}, {name: "pruned", show: asWide},
			{name: "whole", paint: func(c *v) ink { return inkIf(!c.Whole, red) }},
			{name: "head"}, {name: "break_why", kind: prose},
		})(chains, err); err != nil {
			return err
		}
		broken := 0
		for _, c := range chains {
			if !c.Whole {
				broken++
			}
		}
		if broken > 0 {
			g.say("the audit was changed: %s broken", plural(int64(broken), "chain"))
		}
		return exitIf(broken > 0, ExitFailure)
	}, &queues)
}

func newAuditExport(g *globals) *cobra.Command {
	var choice auditFlags
	var format formatFlag
	return g.inOffice(g.described("audit export"), func(ctx context.Context, o *office.Office, _ []string) error {
		return rows[office.AuditLink](g, "", nil, o.ExportAudit(ctx, choice.filter))
	}, &choice, &format)
}
