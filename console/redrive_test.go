package console_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// here runs operations before the answer, so that a test need not wait for them.
func here(do func(context.Context)) { do(context.Background()) }

// post sends a form that has to lead to another page, and returns its address.
func (s *shop) post(path string, form url.Values) string {
	s.t.Helper()
	answer, body := s.ask(http.MethodPost, path, as("ann"), form)
	if answer.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("%s: status %d\n%s", path, answer.StatusCode, body)
	}
	return answer.Header.Get("Location")
}

// has fails the test if a page lacks one of some texts.
func (s *shop) has(path string, texts ...string) {
	s.t.Helper()
	body := s.page(http.StatusOK, path)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			s.t.Errorf("%s does not say %q:\n%s", path, text, body)
		}
	}
}

// work handles what is due in a queue, once.
func (s *shop) work(queue string, err error) {
	s.t.Helper()
	desk, wrong := worker.NewDesk(worker.Config{
		Source: store.NewSource(s.store, queue), Clock: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler),
	})
	if wrong != nil {
		s.t.Fatal(wrong)
	}
	deliveries, wrong := desk.Receive(s.t.Context(), nixie.Want{Max: 10})
	for _, d := range deliveries {
		_, failed := desk.Done(s.t.Context(), d, err, noon)
		wrong = errors.Join(wrong, failed)
	}
	if wrong != nil || len(deliveries) == 0 {
		s.t.Fatalf("%d deliveries, %v", len(deliveries), wrong)
	}
}

func TestRedriveFromPreviewToOutcome(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	s.has("/redrive?filter=queue:orders", "Redrive 2 letters", "Would go", "order &lt;n&gt;: no answer")
	form := url.Values{"shown": {noon.Format(time.RFC3339Nano)}, "reason": {"the port is open"}}
	late := letter(9, "orders", "timeout: order <n>: no answer", "order 9: no answer", -time.Minute)
	if _, errs := s.office.Adopt(t.Context(), []nixie.Letter{late}, "later"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	operation := s.post("/redrive/run?filter=queue:orders", form)
	s.has(operation, "redrive of 2 letters", "under way", "the port is open", `http-equiv="refresh"`)
	s.has("/operations", "the port is open", operation)
	s.has("/audit", "the port is open", operation)
	s.work("orders", nixie.Permanent(errors.New("refused")))
	s.has(operation, "died again", "Redrive 2 letters again")
	if again := s.post(operation+"/repeat", url.Values{}); again != operation {
		t.Errorf("it leads to %s", again)
	}
	s.work("orders", nil)
	s.has(operation, `<div class="good"><dt>succeeded</dt><dd>2</dd></div>`)
	body := s.page(http.StatusOK, operation)
	if strings.Contains(body, `<form class="filter" method`) || strings.Contains(body, "http-equiv") {
		t.Errorf("all succeeded, and it still offers something:\n%s", body)
	}
	s.has("/letters?filter=queue:orders", "order-9")
}

// Of more letters than a preview reads, it says how many can go at most: those that need no review.
func TestPreviewOfManyLetters(t *testing.T) {
	t.Parallel()
	var list []nixie.Letter
	for n := 1; n <= 2_200; n++ {
		l := letter(n, "orders", "timeout: slow", "slow", time.Duration(n)*time.Second)
		switch {
		case n%2 == 0:
			l.NeedsReview = true
		case n%11 == 0:
			l.Redrivable = false
		}
		list = append(list, l)
	}
	s := open(t, console.Options{Run: here}, list...)
	s.has("/redrive?filter=queue:orders", "<dd>2\u202f200</dd>", "At most 1\u202f000 would go", "Redrive at most 1\u202f000 letters")
	s.has("/redrive?filter=queue:orders&force=yes", "At most 2\u202f200 would go", "Redrive at most 2\u202f200 letters")
	s.has("/redrive?filter=queue:orders+needs_review:yes", "Would go</dt><dd>0<", "Nothing would go")
	s.has("/redrive?filter=queue:orders+needs_review:yes&max=10", "the letter needs review", "Nothing would go")
	s.has("/change?verb=discard&filter=queue:orders", "At most 2\u202f200 would go", "Discard at most 2\u202f200 letters")
}

// A selection that a dry run keeps needs no attention before it begins.
func TestKeptSelectionNeedsNoAttention(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, lateOne(1), lateOne(2))
	plan, err := s.office.Keep(t.Context(), &office.OperationRequest{Event: office.OnRedrive, Reason: "a dry run"})
	if err != nil || plan.Selected == 0 || plan.Token == nil {
		t.Fatal(plan, err)
	}
	if page := s.page(http.StatusOK, "/"); strings.Contains(page, "unfinished") || strings.Contains(page, "a dry run") {
		t.Errorf("it asks for attention:\n%s", page)
	}
	s.has("/operations", "a dry run")
	s.has("/operation/"+plan.Token.String(), "nothing has moved yet", "Begin: 2 letters to go")
	ctx, stop := context.WithCancel(t.Context())
	begun := office.OperationRequest{Event: office.OnRedrive, Batch: 1, Progress: func(office.OperationResult) { stop() }}
	if v, err := s.office.Run(ctx, *plan.Token, &begun); !errors.Is(err, context.Canceled) || v.Pending == 0 || v.Pending == v.Selected {
		t.Fatal(v, err)
	}
	if page := s.page(http.StatusOK, "/"); strings.Contains(page, "unfinished") {
		t.Errorf("it moved a letter just now, and is said to have stopped:\n%s", page)
	}
	s.now.Store(int64(2 * time.Minute))
	s.has("/", "unfinished", "1 of 2 letters to go", "a dry run")
	discard := &office.OperationRequest{Event: office.OnDiscard, Reason: "not needed"}
	op, err := s.office.Begin(t.Context(), discard)
	if err == nil {
		_, err = s.office.Run(t.Context(), op.Operation, discard)
	}
	if err != nil {
		t.Fatal(err)
	}
	if page := s.page(http.StatusOK, "/"); strings.Contains(page, "unfinished") {
		t.Errorf("none of its letters waits:\n%s", page)
	}
}

func TestRedriveThatStopsIsResumed(t *testing.T) {
	t.Parallel()
	gone, end := context.WithCancel(context.Background())
	end()
	stopped := true
	s := open(t, console.Options{Run: func(do func(context.Context)) {
		if stopped {
			do(gone)
			return
		}
		do(context.Background())
	}}, healthy()...)
	operation := s.post("/redrive/run", url.Values{"id": {id(3).String(), id(5).String()}, "reason": {"two of them"}})
	s.has("/", "unfinished", "2 of 2 letters to go: redrive by ann, two of them")
	s.has(operation, "This console does not run it.", "Resume: 2 letters to go")
	stopped = false
	s.post(operation+"/resume", url.Values{})
	s.has(operation, `<div class="wait"><dt>under way</dt><dd>2</dd></div>`)
	if _, err := s.office.Purge(t.Context(), &office.PurgeRequest{Queue: "orders", Reason: "not needed"}); err != nil {
		t.Fatal(err)
	}
	s.has(operation, `<div class="soft"><dt>gone</dt><dd>2</dd></div>`)
	s.has("/operations", `data-name="Done">2</td><td class="n" data-name="Succeeded">0</td><td class="n" data-name="Died again">0</td>`)
}

// The console does not know the brokers of other programs: a redrive to one of them does not go on
// into the queues of the store.
func TestRedriveToABrokerIsNotResumed(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	op, err := s.office.Begin(t.Context(), &office.OperationRequest{Event: office.OnRedrive, Reason: "to Kafka",
		Destination: "kafka.orders", Send: func(context.Context, []nixie.Letter) []error { return nil }})
	if err != nil || op.Pending != 3 {
		t.Fatal(op, err)
	}
	for _, verb := range []string{"resume", "repeat"} {
		answer, body := s.ask(http.MethodPost, "/operation/"+op.Operation.String()+"/"+verb, nil, url.Values{})
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "goes to kafka.orders") {
			t.Errorf("%s: status %d\n%s", verb, answer.StatusCode, body)
		}
	}
	queues, err := s.office.Queues(t.Context())
	for _, q := range queues {
		if q.Unfinished() > 0 {
			t.Errorf("%d messages are in %s", q.Unfinished(), q.Name)
		}
	}
	if now, wrong := s.office.Operation(t.Context(), op.Operation); err != nil || wrong != nil || now.Pending != 3 {
		t.Errorf("%+v, %v, %v", now, err, wrong)
	}
}

func TestRedriveRefusesBadForms(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	for _, wrong := range [][2]string{
		{"reason", " "}, {"filter", "raeson:x"}, {"max", "many"}, {"max", "-1"}, {"rate", "fast"}, {"rate", "-1"}, {"rate", "NaN"},
		{"shown", "yesterday"}, {"id", "one"}, {"large", strings.Repeat("x", 80<<10)},
	} {
		form := url.Values{"filter": {"queue:orders"}, "reason": {"because"}}
		form.Set(wrong[0], wrong[1])
		if answer, body := s.ask(http.MethodPost, "/redrive/run", nil, form); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%.20q: status %d\n%s", wrong, answer.StatusCode, body)
		}
	}
	if list, _, err := s.office.Operations(t.Context(), store.Page{}); err != nil || len(list) > 0 {
		t.Errorf("something was begun: %+v, %v", list, err)
	}
}

func TestQueueIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	answer, _ := s.ask(http.MethodPost, "/queue/pause?name=orders", nil, url.Values{"reason": {""}})
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", answer.StatusCode)
	}
	s.has(s.post("/queue/pause?name=orders", url.Values{"reason": {"the port is shut"}}), "paused", "the port is shut")
	s.has(s.post("/queue/resume?name=orders", url.Values{"reason": {"open again"}}), `<button>Pause</button>`, "open again")
}

// starred is a mask that hides one word.
type starred struct{}

func (starred) Text(s string) string      { return strings.ReplaceAll(s, "s3cret", "***") }
func (starred) Header(_, s string) string { return starred{}.Text(s) }
func (starred) Failure(f *nixie.Failure) {
	f.Text, f.Stack = starred{}.Text(f.Text), starred{}.Text(f.Stack)
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	l := letter(1, "orders", "timeout: s3cret "+strings.Repeat("x", 179)+" s3cret", "token s3cret is old", 0) // one is cut
	l.History, l.Fingerprint = append(l.History, l.History[0]), "v2-1"
	l.Message.Headers[0].Value, l.Message.Body = "s3cret", []byte("s3cret")
	s := open(t, console.Options{Mask: starred{}}, l)
	path := "/letter/" + l.ID.String()
	for _, page := range []string{"/", "/groups", "/letters", "/queue?name=orders", path + "?a=1&b=2", "/redrive"} {
		if body := s.page(http.StatusOK, page); strings.Contains(body, "s3c") {
			t.Errorf("%s shows a secret:\n%s", page, body)
		}
	}
	s.has(path, "token *** is old")
}

// nameless hides all values of one header.
type nameless struct{ starred }

func (nameless) Header(name, value string) string {
	if name == "authorization" {
		return "hidden"
	}
	return value
}

// A header is secret by its name: its value may be any text.
func TestSecretHeadersAreHidden(t *testing.T) {
	t.Parallel()
	l := letter(1, "orders", "timeout: slow", "slow", 0)
	l.Message.Headers = append(l.Message.Headers, nixie.Header{Name: "authorization", Value: "of a customer"})
	s := open(t, console.Options{Mask: nameless{}}, l)
	path := "/letter/" + l.ID.String()
	s.has(path, "north", "authorization", "hidden")
	if body := s.page(http.StatusOK, path); strings.Contains(body, "of a customer") {
		t.Errorf("it shows a secret:\n%s", body)
	}
}

func TestOperationThatRunsIsNotUnfinished(t *testing.T) {
	t.Parallel()
	var held func(context.Context)
	runs := 0
	s := open(t, console.Options{Run: func(do func(context.Context)) { held, runs = do, runs+1 }}, healthy()...)
	operation := s.post("/redrive/run", url.Values{"reason": {"all"}})
	s.has(operation, "It runs.", `http-equiv="refresh"`)
	if body := s.page(http.StatusOK, "/"); strings.Contains(body, "unfinished") {
		t.Errorf("it needs attention while it runs:\n%s", body)
	}
	s.post(operation+"/resume", url.Values{})
	if runs != 1 {
		t.Errorf("the operation runs %d times at once", runs)
	}
	held(t.Context())
	s.has(operation, `<dt>under way</dt><dd>3</dd>`)
}
