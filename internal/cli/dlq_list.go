package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newDLQList(g *globals) *cobra.Command {
	var filter filterFlag
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List letters, latest death first",
		Long: `Lists the letters in which somebody still has to do something (open, review,
quarantined) or which are on their way again (redriving); status: in the filter
chooses others.`,
		Example: `  nixie dlq list
  nixie dlq list --filter 'queue:orders reason:timeout age:>1h' -o wide
  nixie dlq list --all -o jsonl | jq -r .key`,
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
		f = office.Unresolved(f)
		return g.listFormat()
	}
	cmd.RunE = g.with(check, func(ctx context.Context, o *office.Office, _ []string) error {
		return list(g, &page, "letters", letterColumns(g.Now()), office.ViewLetter, o.AllLetters(ctx, f, false),
			func(p store.Page) ([]nixie.Letter, string, error) { return o.Letters(ctx, f, p) })
	})
	return cmd
}

// letterColumns are the columns of a list of letters; CSV has them all.
func letterColumns(now time.Time) []column[office.LetterView] {
	type v = office.LetterView
	text := func(name, show string, cell func(*v) string) column[v] {
		return column[v]{name: name, show: show, cell: cell}
	}
	count := func(name, show string, n func(*v) int) column[v] {
		return column[v]{name: name, show: show, cell: func(l *v) string { return strconv.Itoa(n(l)) }, kind: number}
	}
	return []column[v]{
		text("id", asTable, func(l *v) string { return l.ID.String() }),
		text("message_id", asWide, func(l *v) string { return l.MessageID.String() }),
		{name: "key", show: asTable, cell: func(l *v) string { return l.Key }, kind: flex},
		{name: "queue", show: asTable, cell: func(l *v) string { return l.Queue }, kind: flex},
		{name: "type", show: asWide, cell: func(l *v) string { return l.Type }, kind: flex},
		text("status", asTable, func(l *v) string { return string(l.Status) + damaged(l.Damage) }),
		text("age", asTable, func(l *v) string { return age(now.Sub(l.DiedAt.Time)) }),
		text("cause", asWide, func(l *v) string { return string(l.Cause) }),
		text("reason", asCSV, func(l *v) string { return string(l.Reason) }),
		text("class", asCSV, func(l *v) string { return string(l.Class) }),
		{name: "signature", show: asTable, cell: func(l *v) string { return l.Signature }, kind: flex},
		text("fingerprint", asWide, func(l *v) string { return l.Fingerprint }),
		text("redrivable", asWide, func(l *v) string { return yesNo(l.Redrivable) }),
		text("needs_review", asWide, func(l *v) string { return yesNo(l.NeedsReview) }),
		text("rule", asCSV, func(l *v) string { return l.Rule }),
		count("attempts", asWide, func(l *v) int { return l.Attempts }),
		count("deliveries", asCSV, func(l *v) int { return l.Deliveries }),
		count("crashes", asCSV, func(l *v) int { return l.Crashes }),
		count("generation", asCSV, func(l *v) int { return l.Generation }),
		count("redrives", asWide, func(l *v) int { return l.Redrives }),
		text("first_failed_at", asCSV, func(l *v) string { return l.FirstFailedAt.String() }),
		text("last_failed_at", asCSV, func(l *v) string { return l.LastFailedAt.String() }),
		text("died_at", asWide, func(l *v) string { return l.DiedAt.String() }),
		text("damage", asCSV, func(l *v) string { return strings.Join(l.Damage, "; ") }),
	}
}

// damaged marks a record of which something cannot be read.
func damaged(damage []string) string {
	if len(damage) == 0 {
		return ""
	}
	return " (damaged)"
}
