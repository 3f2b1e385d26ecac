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

// blocked makes a strict queue in which a dead message blocks two others.
func (s *shop) blocked() nixie.Letter {
	s.t.Helper()
	s.order("orders")
	for _, key := range []string{"first", "second", "third"} {
		if _, err := s.store.Enqueue(s.t.Context(), nixie.Message{Queue: "orders", Stream: "north", Key: key}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.work("orders", nixie.Permanent(errors.New("refused")))
	l, err := s.office.Letter(s.t.Context(), "first")
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func TestBlockedStreamIsUnblocked(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	s.has("/streams", "No stream is blocked", "No queue has an order")
	l := s.blocked()
	s.has("/letter/"+l.ID.String(), "blocked: 2 messages behind this letter")
	s.has("/", "orders: 1 stream blocked by a dead message, 2 messages waiting")
	s.has("/streams", "north", `data-name="Waiting">2</td>`, "/letter/"+l.ID.String(), "refused")
	s.has("/streams?queue=orders", "north", "blocked")
	const stream = "/stream?name=north&queue=orders"
	s.has(stream, "Let 2 messages pass", "Unblock", "second", "third")
	const pass, unblock = "/stream/pass?name=north&queue=orders", "/stream/unblock?name=north&queue=orders"
	if answer, _ := s.ask(http.MethodPost, unblock, nil, url.Values{"reason": {" "}}); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", answer.StatusCode)
	}
	s.has(s.post(pass, url.Values{"reason": {"they do not need it"}}), "2 messages of the stream may go")
	s.has(s.post(unblock, url.Values{"reason": {"it is lost"}}), "1 letter blocked it", "It goes on")
	s.has("/audit", "stream north unblocked: it is lost")
	s.page(http.StatusNotFound, "/stream?name=none&queue=orders")
}

func TestRetriesAreHastenedAndEnded(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	s.has("/retries", "Nothing failed and waits")
	var ids []string
	for _, key := range []string{"one", "two", "three"} {
		added, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: "mail", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, added[0].ID.String())
	}
	s.work("mail", nixie.RetryAfter(errors.New("smtp is slow"), time.Hour))
	s.has("/retries?queue=mail", "three", "1 of 5", "in 1 h 00 min", "smtp is slow")
	form := func(id string) url.Values { return url.Values{"id": {id}, "reason": {"it is fast again"}} }
	s.has(s.post("/retries/now?queue=mail", form(ids[0])), "Due now: 1 message.", ">now<")
	s.has(s.post("/retries/cancel", form(ids[1])), "Ended without another attempt: 1 message.")
	s.has(s.post("/retries/hold", form(ids[2])), "Buried, to be reviewed: 1 message.")
	s.has("/letters", "three", "review")
	if body := s.page(http.StatusOK, "/retries"); strings.Contains(body, "two") || strings.Contains(body, "three") {
		t.Errorf("what ended still waits:\n%s", body)
	}
	for wrong, status := range map[string]int{"": http.StatusBadRequest, "none": http.StatusBadRequest, ids[1]: http.StatusConflict} {
		values := form(wrong)
		if wrong == "" {
			values.Del("id")
		}
		if answer, body := s.ask(http.MethodPost, "/retries/now", nil, values); answer.StatusCode != status {
			t.Errorf("%q: status %d, want %d\n%s", wrong, answer.StatusCode, status, body)
		}
	}
	if answer, _ := s.ask(http.MethodPost, "/retries/cancel", nil, url.Values{"id": {ids[0]}}); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", answer.StatusCode)
	}
}

// Of two messages one has ended meanwhile: the answer says which was refused, and how many changed.
func TestARefusedMessageIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	added, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: "mail"}, nixie.Message{Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	s.work("mail", nixie.RetryAfter(errors.New("smtp is slow"), time.Hour))
	waits, ended := added[0].ID.String(), added[1].ID.String()
	s.post("/retries/cancel", url.Values{"id": {ended}, "reason": {"it is not needed"}})
	form := url.Values{"id": {waits, ended}, "reason": {"it is fast again"}}
	answer, body := s.ask(http.MethodPost, "/retries/now", nil, form)
	if answer.StatusCode != http.StatusConflict || !strings.Contains(body, "1 of 2 messages changed") || !strings.Contains(body, ended) {
		t.Errorf("status %d\n%s", answer.StatusCode, body)
	}
}

func TestPoliciesJudgeAnError(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	s.has("/policies", "max_attempts", "whizbang", "None: workers without a policy of their own")
	s.has("/policies?text=connection+refused&attempt=2", "Attempt 2:", "after 11 attempts and 15m")
	s.has("/policies?text=odd&attempt=2", "Attempt 2:", "in <strong>2s</strong>", "after 5 attempts and 15s",
		"<strong>retry</strong> decided: otherwise: retry after the backoff")
	s.has("/policies?text=x&reason=validation", "Attempt 1:", "<strong>permanent</strong> decided", "a redrive needs force")
	s.has("/policies?crash=yes", "<strong>max-crashes</strong> decided", "cause poison")
	two, err := office.ParseSettings([]string{"max-attempts=2", "never-dead=text:busy"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.office.Set(t.Context(), "orders", two, "they are cheap"); err != nil {
		t.Fatal(err)
	}
	s.has("/policies?queue=orders&text=x", "after 2 attempts", "The policy of <bdi>orders</bdi>", "max-attempts=2")
	s.has("/policies?queue=orders&text=busy", "never-dead", "max-deliveries")
	many, err := office.ParseSettings([]string{"max-attempts=500"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.office.Set(t.Context(), "mail", many, "it is slow"); err != nil {
		t.Fatal(err)
	}
	s.has("/policies?queue=mail&text=x", "It goes on: after 100 attempts")
	for _, wrong := range []string{
		"queue=orders&profile=wink", "profile=none", "reason=bad&text=x", "exit=one", "wait=long", "attempt=0", "class=bad&text=x",
		"text=" + strings.Repeat("x", 5<<10),
	} {
		s.page(http.StatusBadRequest, "/policies?"+wrong)
	}
	s.page(http.StatusNotFound, "/policies?queue=none")
}

func TestSettingsSayWhatProtectsNothing(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Prefix: "/ops"}, healthy()...)
	week, err := office.ParseSettings([]string{"letter-retention=7d"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.office.Set(t.Context(), "orders", week, "space"); err != nil {
		t.Fatal(err)
	}
	s.has("/ops/settings", "No logins.", "Secrets are not hidden", ">7d</td>", "<code>/ops/</code>", "all others")
}

func TestVerbsTellOnlyWhatTheyKnow(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	s.has("/?done=retried.3.message", "Due now: 3 messages.")
	for _, wrong := range []string{
		"call+0800.1.message", "retried.x.message", "retried.1.<b>", "retried.1.call", "retried", "retried.-1.message",
	} {
		if body := s.page(http.StatusOK, "/?done="+wrong); strings.Contains(body, `class="told"`) {
			t.Errorf("%s makes the page say something:\n%s", wrong, body)
		}
	}
}
