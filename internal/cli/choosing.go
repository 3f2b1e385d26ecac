package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/office"
)

// wantedHeader is a --header of a redrive.
type wantedHeader struct {
	name, value string
	exact       bool // the value counts as well
}

// parseHeaders reads --header.
func parseHeaders(texts []string) (all []wantedHeader, err error) {
	for _, text := range texts {
		name, value, exact := strings.Cut(text, "=")
		if name == "" {
			return nil, usagef("--header is %q: give it as NAME=VALUE, or NAME alone", text)
		}
		all = append(all, wantedHeader{name, value, exact})
	}
	return all, nil
}

// hasAll reports whether a record has each of the headers.
func hasAll(headers []broker.RecordHeader, wanted []wantedHeader) bool {
	for _, want := range wanted {
		if !slices.ContainsFunc(headers, func(h broker.RecordHeader) bool {
			return strings.EqualFold(h.Name, want.name) && (!want.exact || string(h.Value) == want.value)
		}) {
			return false
		}
	}
	return true
}

// choose makes those letters the selection of work that have the headers and for which
// --where holds, the oldest deaths first where there is a maximum.
func (m *moving) choose(ctx context.Context, o *office.Office, work *office.OperationRequest, headers []wantedHeader) error {
	for _, h := range headers {
		if broker.Ours(h.name) {
			return usagef("--header %s: a letter of the office has the headers of its sender; what it died of is chosen by --filter", h.name)
		}
	}
	ids, err := m.filter.pick(ctx, o, work.EffectiveFilter(), func(l *nixie.Letter) bool { return hasAll(broker.FromLetter(l).Headers, headers) })
	if err != nil {
		return err
	}
	if work.Max > 0 && len(ids) > work.Max {
		ids = ids[len(ids)-work.Max:]
	}
	if len(ids) > maxPicked {
		return usagef("%d letters are chosen one by one, the most at once are %d: give --max %[2]d, and run the same command again", len(ids), maxPicked)
	}
	work.IDs = ids
	if m.filter.where != "" {
		work.Text = strings.TrimSpace(work.Text + " --where " + quote(m.filter.where))
	}
	for _, text := range m.headers {
		work.Text = strings.TrimSpace(work.Text + " --header " + quote(text))
	}
	return nil
}
