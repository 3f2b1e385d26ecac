//go:build linux

package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// question is something that an operator asks.
type question struct {
	name string
	ask  func(context.Context) error
}

// questions are all of them.
func (m *million) questions() []question {
	return slices.Concat(m.pages(), m.searches(), m.groups(), m.numbers())
}

// filters are the choices that pages and groups are asked with, in the language
// of people.
func (m *million) filters() []string {
	day := func(d int) string { return m.began.AddDate(0, 0, d).Format(time.DateOnly) }
	one := m.kind(7)
	return []string{
		"", "status:open,review,quarantined,redriving", "queue:queue-3", "queue:none", "reason:timeout", "reason:" + string(one.Reason),
		"type:type-6", "status:quarantined", "status:resolved", "class:permanent", "cause:poison",
		"fingerprint:" + one.Fingerprint, "signature:Call7:", "signature:refused", "redrivable:no", "needs_review:yes",
		"died:" + day(12), "died:<" + day(2), "died:>=" + day(3) + " died:<" + day(28), "age:<1h",
		"queue:queue-3 reason:" + string(m.kind(13).Reason) + " status:open", "queue:queue-2 type:type-0 status:open,review died:<" +
			day(3), "status:discarded queue:queue-4 died:" + day(20),
	}
}

// narrow are choices that counters know nothing of.
func (m *million) narrow() []string {
	day := func(d int) string { return m.began.AddDate(0, 0, d).Format(time.DateOnly) }
	return []string{
		"stream:customer-100", "stream:none", "key:order-" + strconv.Itoa(m.n/2), "key:nothing",
		"first_failed:" + day(12), "first_failed:<" + day(0), "last_failed:" + day(12), "last_failed:>" + day(40),
		"text:refused", "text:\"FALLEN behind\"", "text:\"was never said\"", "text:\"order " + strconv.Itoa(m.n/3) + " of\"",
		"queue:queue-3 text:\"fallen behind\"", "text:zq",
		"attempts:3", "attempts:>9", "deliveries:>5", "redrives:>0", "redrives:>3", "crashes:>0",
	}
}

func (m *million) parse(text string) nixie.Filter {
	m.t.Helper()
	f, err := filter.Parse(text, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

// page is a question for the page after some others.
func (m *million) page(name string, f nixie.Filter, cursor string) question {
	return question{name: name, ask: func(ctx context.Context) error {
		_, _, err := m.store.Letters(ctx, f, store.Page{Cursor: cursor})
		return err
	}}
}

func (m *million) pages() (list []question) {
	for _, text := range m.filters() {
		list = append(list, m.page("page "+text, m.parse(text), ""))
	}
	f := office.Unresolved(nixie.Filter{})
	for _, at := range []int{m.n / 2, m.n - 60} {
		list = append(list, m.page(fmt.Sprintf("page after %d", at), nixie.Filter{}, m.cursor(at)),
			m.page(fmt.Sprintf("page after %d, unresolved", at), f, m.cursor(at)))
	}
	return list
}

// cursor returns the cursor of the page after a number of letters.
func (m *million) cursor(after int) string {
	m.t.Helper()
	f := nixie.Filter{Died: nixie.Times{Before: m.letter(m.n - after).DiedAt}}
	_, cursor, err := m.store.Letters(m.t.Context(), f, store.Page{Limit: 1})
	if err != nil {
		m.t.Fatal(err)
	}
	return cursor
}

func (m *million) searches() (list []question) {
	for _, text := range m.narrow() {
		list = append(list, m.page("page "+text, m.parse(text), ""))
	}
	return append(list,
		question{name: "letter by key", ask: func(ctx context.Context) error {
			_, err := m.office.Letter(ctx, fmt.Sprint("order-", m.n/3))
			return err
		}},
		question{name: "a whole page with bodies", ask: func(ctx context.Context) error {
			_, _, err := m.store.Letters(ctx, nixie.Filter{}, store.Page{Whole: true})
			return err
		}})
}

func (m *million) groups() (list []question) {
	ask := func(text string, by store.GroupBy) {
		f := m.parse(text)
		list = append(list, question{name: fmt.Sprintf("groups by %s %s", by, text), ask: func(ctx context.Context) error {
			_, _, err := m.store.Count(ctx, f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanRecent, Described: true})
			return err
		}})
	}
	for _, by := range []store.GroupBy{
		store.ByFingerprint, store.ByReason, store.ByClass, store.ByType, store.ByQueue, store.ByStatus, store.ByHour, store.ByRedrivable,
		store.ByAttempts, store.ByReview,
	} {
		ask("", by)
	}
	for _, text := range m.filters()[1:] {
		ask(text, store.ByFingerprint)
		ask(text, store.ByHour)
	}
	for _, text := range m.narrow() {
		ask(text, store.ByFingerprint)
		ask(text, store.ByHour)
	}
	return list
}

func (m *million) numbers() []question {
	return []question{
		{name: "counts by everything", ask: func(ctx context.Context) error {
			_, _, err := m.store.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint, store.ByReason,
				store.ByClass, store.ByType, store.ByQueue, store.ByStatus, store.ByHour, store.ByRedrivable, store.ByReview,
				store.ByAttempts}, Scan: store.ScanRecent})
			return err
		}},
		{name: "queues", ask: func(ctx context.Context) error { _, err := m.store.Queues(ctx, store.QueueQuery{}); return err }},
		{name: "office: stats", ask: func(ctx context.Context) error {
			_, err := m.office.Stats(ctx, nixie.Filter{}, store.ScanRecent)
			return err
		}},
		{name: "office: stats of a queue", ask: func(ctx context.Context) error {
			_, err := m.office.Stats(ctx, m.parse("queue:queue-3"), store.ScanRecent)
			return err
		}},
		{name: "office: analyze", ask: func(ctx context.Context) error {
			_, err := m.office.Analyze(ctx, office.Unresolved(nixie.Filter{}), store.ScanRecent)
			return err
		}},
		{name: "office: analyze a text", ask: func(ctx context.Context) error {
			_, err := m.office.Analyze(ctx, office.Unresolved(m.parse("text:refused")), store.ScanRecent)
			return err
		}},
		{name: "office: stats of deliveries", ask: func(ctx context.Context) error {
			_, err := m.office.Stats(ctx, m.parse("deliveries:>5"), store.ScanRecent)
			return err
		}},
		{name: "office: analyze the last day", ask: func(ctx context.Context) error {
			_, err := m.office.Analyze(ctx, office.Unresolved(m.parse("age:<1d")), store.ScanRecent)
			return err
		}},
		{name: "office: reasons", ask: func(ctx context.Context) error { _, err := m.office.Reasons(ctx, nil); return err }},
		{name: "office: retries", ask: func(ctx context.Context) error { _, err := m.office.Retries(ctx, nil); return err }},
	}
}
