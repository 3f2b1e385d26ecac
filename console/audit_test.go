package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
)

// audited is a console over an audit: people adopted three letters and paused a queue, a rule
// buried a message.
func audited(t *testing.T) *shop {
	t.Helper()
	s := open(t, console.Options{Run: here}, healthy()...)
	if _, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: "orders", Type: "ship", Key: "fourth"}); err != nil {
		t.Fatal(err)
	}
	s.work("orders", nixie.Permanent(errors.New("refused")))
	if _, err := s.office.Pause(t.Context(), []string{"mail"}, "the provider is down"); err != nil {
		t.Fatal(err)
	}
	return s
}

// The audit is that of people, unless rules or both are asked for. Each of its filters is in its
// address, and its form keeps the others.
func TestAuditByWhoWhatAndWhen(t *testing.T) {
	t.Parallel()
	s := audited(t)
	const people, rule, adopted = "the provider is down", "reason:handler", "the test"
	for query, want := range map[string]struct{ has, lacks []string }{
		"":                           {[]string{people, adopted, "adopt ×2"}, []string{rule}},
		"?by=people":                 {[]string{people, adopted}, []string{rule}},
		"?by=rules":                  {[]string{rule}, []string{people, adopted}},
		"?by=people+and+rules":       {[]string{people, adopted, rule}, nil},
		"?event=configure":           {[]string{people}, []string{adopted, rule}},
		"?event=bury&by=rules":       {[]string{rule, `value="rules"`}, []string{people}},
		"?since=now-1h":              {[]string{people, adopted}, nil},
		"?until=now-1h":              {[]string{"No entry matches"}, []string{people, adopted}},
		"?since=2026-05-05":          {[]string{"No entry matches"}, []string{people}},
		"?queue=mail":                {[]string{people}, nil},
		"?actor=nixie":               {[]string{rule}, []string{people}},
		"?since=yesterday":           {[]string{"since is &#34;yesterday&#34;: give 2026-01-31", `value="yesterday"`}, []string{people}},
		"?until=2026-05-04&event=no": {[]string{"what is &#34;no&#34;: choose one of the list"}, []string{people}},
	} {
		page := s.page(http.StatusOK, "/audit"+query)
		for _, text := range want.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not say %q:\n%s", query, text, page)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(page, text) {
				t.Errorf("%s says %q:\n%s", query, text, page)
			}
		}
	}
	s.has("/audit?queue=mail&since=now-1h&by=rules", `href="/audit?queue=mail&amp;since=now-1h"`,
		`href="/audit?by=people&#43;and&#43;rules&amp;queue=mail&amp;since=now-1h"`)
}

// An operation that has ended says when and how long it took, and offers nothing that is done.
func TestOperationThatEndedOffersNothingThatIsDone(t *testing.T) {
	t.Parallel()
	w := open(t, console.Options{Run: here}, lateOne(1), lateOne(2))
	w.now.Store(int64(time.Second))
	operation := w.post("/redrive/run?filter=queue:orders", url.Values{"reason": {"it is up"}})
	if page := w.page(http.StatusOK, operation); strings.Contains(page, "<dt>Ended") || strings.Contains(page, "redrive what is left") {
		t.Errorf("it is under way:\n%s", page)
	}
	w.now.Store(int64(91 * time.Second))
	w.work("orders", nixie.Permanent(errors.New("refused")))
	w.has(operation, "2026-05-04 12:01:31</time>, after 1 min", "Redrive 2 letters again", "Its 2 letters that wait", "why they died again",
		"redrive what is left")
	w.has("/operations", "took 1 min")
	discard := &office.OperationRequest{Event: office.OnDiscard, Reason: "not needed"}
	op, err := w.office.Begin(t.Context(), discard)
	if err == nil {
		_, err = w.office.Run(t.Context(), op.Operation, discard)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{operation, "/operation/" + op.Operation.String()} {
		w.has(path, "<dt>Ended</dt>")
		page := w.page(http.StatusOK, path)
		for _, offer := range []string{"<form class=\"filter\"", "that wait", "why they died again", "what is left"} {
			if strings.Contains(page, offer) {
				t.Errorf("%s offers %q:\n%s", path, offer, page)
			}
		}
	}
}

// A letter that cannot be redriven says why, and has no button for it.
func TestLetterWhoseBodyIsElsewhere(t *testing.T) {
	t.Parallel()
	gone, expired := letter(1, "orders", "timeout: slow", "slow", 0), letter(2, "orders", "timeout: slow", "slow", 0)
	gone.Message.Origin, gone.Message.Body = &nixie.Origin{System: "kafka", Channel: "orders", BodyAt: "orders/0@7"}, nil
	expired.Message.ExpiresAt = noon.Add(-time.Second)
	s := open(t, console.Options{}, gone, expired, letter(3, "orders", "timeout: slow", "slow", 0))
	for id, why := range map[nixie.ID]string{gone.ID: "it has no body, which lay at orders/0@7", expired.ID: "it has expired"} {
		s.has("/letter/"+id.String(), "It cannot be redriven: "+why, "it cannot go", "Redrive all of this cause…", "Discard…")
		if page := s.page(http.StatusOK, "/letter/"+id.String()); strings.Contains(page, `>Redrive…</a>`) {
			t.Errorf("it has a button to redrive it:\n%s", page)
		}
	}
	s.has("/letter/"+id(7).String(), `>Redrive…</a>`, "may go")
}
