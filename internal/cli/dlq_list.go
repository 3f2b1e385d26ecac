package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newDLQList(g *globals, of *jobLetters) *cobra.Command {
	choice := letterFlags{of: of}
	var page pageFlags
	masking := masking{always: true}
	return g.inOffice(g.described("dlq list"), func(ctx context.Context, o *office.Office, _ []string) error {
		f, err := choice.resolve(ctx, o, office.Unresolved(choice.filter))
		if err != nil {
			return err
		}
		view := func(l *nixie.Letter) office.LetterView {
			v := office.ViewLetter(l)
			v.LastFailure = masking.text(v.LastFailure)
			return v
		}
		return list(g, &page, "letters", letterColumns(g.Now()), view, o.AllLetters(ctx, f, false),
			func(p store.Page) ([]nixie.Letter, string, error) { return o.Letters(ctx, f, p) })
	}, &page, &choice, &masking)
}

// letterColumns are the columns of a list of letters.
func letterColumns(now time.Time) []column[office.LetterView] {
	type v = office.LetterView
	return []column[v]{
		{name: "id", kind: ids}, {name: "message_id", show: asWide}, {name: "key", kind: flex, spare: 1},
		{name: "queue", kind: flex, spare: 3},
		{name: "type", show: asWide, kind: flex},
		{name: "status", cell: func(l *v) string { return string(l.Status) + damaged(l.Damage) },
			paint: func(l *v) ink { return statusInk(l.Status) }},
		{name: "age", spare: 2, cell: func(l *v) string { return age(now.Sub(l.DiedAt.Time)) }},
		{name: "cause", show: asWide}, {name: "origin", show: asWide, kind: flex}, {name: "signature", kind: flex},
		{name: "last_failure", show: asWide, kind: flex}, {name: "fingerprint", show: asWide}, {name: "redrivable", show: asWide},
		{name: "needs_review", show: asWide}, {name: "attempts", show: asWide}, {name: "redrives", show: asWide},
		{name: "died_at", show: asWide},
	}
}

// statusInk makes letters that need a person stand out.
func statusInk(s nixie.Status) ink {
	switch s {
	case nixie.StatusOpen, nixie.StatusQuarantined:
		return red
	case nixie.StatusReview, nixie.StatusRedriving:
		return yellow
	}
	return faint
}

// damaged marks a record that cannot be read whole.
func damaged(damage []string) string { return either(len(damage) == 0, "", " (damaged)") }
