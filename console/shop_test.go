package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store/memory"
)

// noon is the time of every page in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// id makes an ID for a number.
func id(n int) nixie.ID {
	return nixie.ID{0x01, 0x9d, 0xf0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, byte(n >> 8), byte(n)}
}

// letter makes a letter that died of a cause.
func letter(n int, queue, signature, text string, ago time.Duration) nixie.Letter {
	died := noon.Add(-ago)
	f := nixie.Failure{
		Generation: 1, Attempt: 1, StartedAt: died.Add(-time.Second), FailedAt: died, Took: time.Second, Class: nixie.ClassTransient,
		Reason: nixie.ReasonTimeout, Type: "*net.OpError", Text: text, Worker: "worker-1", Node: "host-a", Decision: nixie.Bury,
	}
	return nixie.Letter{
		ID: id(2*n + 1),
		Message: nixie.Message{
			ID: id(2 * n), Queue: queue, Type: "ship", Key: fmt.Sprintf("order-%d", n), Body: fmt.Appendf(nil, `{"order":%d}`, n),
			Headers:    []nixie.Header{{Name: "tenant", Value: "north"}},
			EnqueuedAt: died.Add(-time.Minute), FirstReceivedAt: died.Add(-time.Second), Attempts: 1, Deliveries: 1, Generation: 1,
		},
		History: []nixie.Failure{f}, Cause: nixie.CauseExhausted, Class: f.Class, Reason: f.Reason, Signature: signature,
		Fingerprint: "v2-" + signature, Status: nixie.StatusOpen, Redrivable: true,
		FirstFailedAt: died, LastFailedAt: died, DiedAt: died,
	}
}

// lateOne makes a letter that died at noon.
func lateOne(n int) nixie.Letter { return letter(n, "orders", "timeout: slow", "slow", 0) }

// shop is a console over a store in memory.
type shop struct {
	t      *testing.T
	store  *memory.Store
	office *office.Office
	server *httptest.Server
	now    atomic.Int64 // nanoseconds after noon
}

func open(t *testing.T, opts console.Options, letters ...nixie.Letter) *shop {
	t.Helper()
	s := &shop{t: t}
	clock := func() time.Time { return noon.Add(time.Duration(s.now.Load())) }
	s.store = memory.New(memory.Options{Clock: clock})
	var err error
	if s.office, err = office.New(office.Config{Store: s.store, Actor: "ann", Clock: clock}); err != nil {
		t.Fatal(err)
	}
	if _, errs := s.office.Adopt(t.Context(), letters, "the test"); errors.Join(errs...) != nil {
		t.Fatal(errors.Join(errs...))
	}
	if opts.Clock = clock; opts.Zone == nil {
		opts.Zone = time.UTC
	}
	s.server = httptest.NewServer(console.Handler(s.office, opts))
	t.Cleanup(s.server.Close)
	return s
}

// healthy are the letters of most tests: a new cause, a known one, and one of another queue.
func healthy() []nixie.Letter {
	list := []nixie.Letter{
		letter(1, "orders", "timeout: order <n>: no answer", "order 1: no answer", 10*time.Minute),
		letter(2, "orders", "timeout: order <n>: no answer", "order 2: no answer", 20*time.Minute),
		letter(3, "mail", "timeout: smtp is slow", "smtp is slow", 30*time.Hour),
	}
	again := list[0].History[0]
	again.Attempt, again.Text, again.Worker, again.Decision, again.NextAt = 2, "order 1: refused", "worker-2", nixie.Bury, time.Time{}
	list[0].History = append(list[0].History, again)
	list[0].Message.Attempts, list[0].Message.Deliveries, list[0].Message.LastFailure = 2, 2, again.Text
	return list
}

// ask sends a request and returns the answer with its body.
func (s *shop) ask(method, path string, edit func(*http.Request), form url.Values) (*http.Response, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+path, nil)
	if form != nil {
		r, err = http.NewRequestWithContext(ctx, method, s.server.URL+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if edit != nil {
		edit(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(body)
}

// page returns a page that has to have a status.
func (s *shop) page(status int, path string) string {
	s.t.Helper()
	answer, body := s.ask(http.MethodGet, path, nil, nil)
	if answer.StatusCode != status {
		s.t.Fatalf("%s: status %d, want %d\n%s", path, answer.StatusCode, status, body)
	}
	return body
}

// order puts the streams of a queue in strict order.
func (s *shop) order(queue string) {
	s.t.Helper()
	strict, err := office.ParseSettings([]string{"order=strict"})
	if err == nil {
		_, err = s.office.Set(s.t.Context(), queue, strict, "in order")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// purge removes a letter for good.
func (s *shop) purge(letter nixie.ID) {
	s.t.Helper()
	open := nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}
	work := &office.OperationRequest{Event: "purge", IDs: []nixie.ID{letter}, Filter: open, Reason: "asked"}
	op, err := s.office.Begin(s.t.Context(), work)
	if err != nil {
		s.t.Fatal(err)
	}
	if done, err := s.office.Run(s.t.Context(), op.Operation, work); err != nil || done.Done() != 1 {
		s.t.Fatal(done, err)
	}
}

// pages are the addresses of all pages over the letters of healthy.
func pages() []string {
	group := url.Values{"fingerprint": {"v2-timeout: order <n>: no answer"}}.Encode()
	return []string{
		"/", "/groups", "/group?" + group, "/letters", "/letters?filter=queue%3Aorders", "/letter/" + id(3).String(),
		"/letter/" + id(3).String() + "?a=1&b=2&as=hex", "/queues", "/queue?name=orders", "/audit",
		"/streams", "/retries", "/policies?text=refused", "/settings",
	}
}
