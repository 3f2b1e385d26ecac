package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
)

// put enqueues a message and returns its ID.
func (s *shop) put(m nixie.Message) nixie.ID {
	s.t.Helper()
	added, err := s.store.Enqueue(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return added[0].ID
}

func messageIn(queue string) nixie.Message { return nixie.Message{Queue: queue, Type: "ship"} }

// take leases what is due in a queue.
func (s *shop) take(queue string) []*nixie.Delivery {
	s.t.Helper()
	list, err := s.store.Claim(s.t.Context(), queue, nixie.Want{Max: 10, Lease: time.Minute})
	if err != nil || len(list) == 0 {
		s.t.Fatal(len(list), err)
	}
	return list
}

// staged makes a message of each stage, each in a queue of that name, and returns their IDs.
func (s *shop) staged() map[string]nixie.ID {
	s.t.Helper()
	ids := map[string]nixie.ID{}
	put := func(stage string, m nixie.Message) {
		m.Queue, m.Key, m.Type, m.Body = stage, "the "+stage, "ship", []byte(`{"order": 7}`)
		m.Headers = []nixie.Header{{Name: "tenant", Value: "north"}}
		ids[stage] = s.put(m)
	}
	s.order("blocked")
	s.put(nixie.Message{Queue: "blocked", Stream: "north", Key: "its head"})
	put("blocked", nixie.Message{Stream: "north"})
	put("scheduled", nixie.Message{Delay: time.Hour})
	for _, stage := range []string{"ready", "running", "retrying", "succeeded", "discarded", "canceled", "dead"} {
		put(stage, nixie.Message{})
	}
	s.take("running")
	s.work("retrying", nixie.RetryAfter(errors.New("smtp is slow"), time.Hour))
	s.work("succeeded", nil)
	s.work("discarded", nixie.Verdict(nixie.Discard, errors.New("not ours")))
	s.work("dead", nixie.Permanent(errors.New("refused")))
	s.post("/message/"+ids["canceled"].String()+"/cancel", url.Values{"reason": {"not needed"}})
	return ids
}

func TestMessagesByStage(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	s.has("/messages?stage=ready", "0 messages ready")
	ids := s.staged()
	for _, stage := range office.Stages() {
		body := s.page(http.StatusOK, "/messages?stage="+string(stage))
		for name, id := range ids {
			listed := strings.Contains(body, `href="/message/`+id.String()+`"`)
			also := stage == office.StageScheduled && name == "retrying" // which is due later too
			if want := name == string(stage) || also; listed != want {
				t.Errorf("the list of %s has the message that is %s: %t", stage, name, listed)
			}
		}
		link := fmt.Sprintf(`href="/messages?filter=queue%%3A%s&amp;stage=%[1]s"`, stage)
		if stage != office.StageDiscarded && stage != office.StageCanceled { // no number of a queue
			from := map[office.Stage]string{office.StageRetrying: "/retries?queue=retrying"}[stage]
			if from == "" {
				from = "/queue?name=" + string(stage)
			}
			s.has(from, link)
		}
		s.has("/messages?filter=queue:"+string(stage)+"&stage="+string(stage), `>the `+string(stage)+`</bdi></a>`)
	}
	s.has("/messages?stage=running", "Held by", "Held since", "Cancel the selected")
	s.has("/messages?stage=blocked", `/stream?name=north&amp;queue=blocked`)
	s.has("/messages?stage=retrying", "in 1 h 00 min", "smtp is slow", `retrying <span class="n">1</span>`)
	s.has("/messages", "the succeeded", "the dead", "Enqueued")
	s.has("/stream?queue=blocked&name=north", "/message/"+ids["blocked"].String())
	s.has("/audit", "/message/"+ids["canceled"].String())
	if body := s.page(http.StatusOK, "/messages?stage=succeeded"); strings.Contains(body, "Cancel the selected") {
		t.Errorf("what has ended can be changed:\n%s", body)
	}
	s.page(http.StatusBadRequest, "/messages?stage=eaten")
	s.page(http.StatusBadRequest, "/messages?cursor=none")
	s.has("/messages?filter=raeson:x", "^</pre>")
	s.has("/messages?stage=ready&filter=state:dead", "leave one out")
	s.has("/messages?filter=queue:none", "No message that matches is here.")
}

// What can be done with a message is offered in its state, and refused in the others.
func TestMessagesStateByVerb(t *testing.T) {
	t.Parallel()
	values := map[string]string{"when": "90m", "to": "elsewhere", "reason": "the test"}
	offered := map[string][]string{
		"ready": {"reschedule", "move", "hold", "cancel"}, "running": {"cancel"},
		"scheduled": {"now", "reschedule", "move", "hold", "cancel"}, "retrying": {"now", "reschedule", "move", "reset", "hold", "cancel"},
		"blocked": {"reschedule", "move", "pass", "hold", "cancel"}, "succeeded": nil, "discarded": nil, "canceled": nil, "dead": nil,
	}
	verbs := []string{"now", "reschedule", "move", "reset", "pass", "hold", "cancel"}
	done := 0
	for _, verb := range verbs {
		s := open(t, console.Options{})
		for stage, id := range s.staged() {
			path := "/message/" + id.String()
			body := s.page(http.StatusOK, path)
			for _, other := range verbs {
				if is := strings.Contains(body, `action="`+path+"/"+other+`"`); is != slices.Contains(offered[stage], other) {
					t.Errorf("%s offers %s: %t", stage, other, is)
				}
			}
			form := url.Values{}
			for name, value := range values {
				form.Set(name, value)
			}
			answer, body := s.ask(http.MethodPost, path+"/"+verb, nil, form)
			if slices.Contains(offered[stage], verb) {
				if answer.StatusCode != http.StatusSeeOther {
					t.Errorf("%s %s: status %d\n%s", verb, stage, answer.StatusCode, body)
					continue
				}
				s.has(answer.Header.Get("Location"), `class="told"`, "1 message", "the test")
				done++
				continue
			}
			if answer.StatusCode != http.StatusConflict && !harmless(verb, stage) {
				t.Errorf("%s %s: status %d, want 409\n%s", verb, stage, answer.StatusCode, body)
			}
		}
	}
	t.Logf("%d verbs by %d states, %d done", len(verbs), len(offered), done)
}

// harmless reports whether a verb that is not offered changes nothing of a message of a stage.
func harmless(verb, stage string) bool {
	return (verb == "now" || verb == "reset") && (stage == "ready" || stage == "blocked" || stage == "scheduled")
}

func TestMessagesBadInput(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	ids := s.staged()
	path := "/message/" + ids["scheduled"].String()
	for what, form := range map[string]url.Values{
		"reason is empty":           {"when": {"90m"}},
		"when is &#34;soon&#34;":    {"when": {"soon"}, "reason": {"x"}},
		"when is &#34;20y&#34;":     {"when": {"20y"}, "reason": {"x"}},
		"when is &#34;4000d&#34;":   {"when": {"4000d"}, "reason": {"x"}},
		"when is &#34;9999-12-31T0": {"when": {"9999-12-31T00:00:00Z"}, "reason": {"x"}},
	} {
		answer, body := s.ask(http.MethodPost, path+"/reschedule", nil, form)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, what) {
			t.Errorf("%v: status %d, does not say %q\n%s", form, answer.StatusCode, what, body)
		}
	}
	for _, to := range []string{"", " ", "a\x00b", strings.Repeat("x", 1000)} {
		answer, body := s.ask(http.MethodPost, path+"/move", nil, url.Values{"to": {to}, "reason": {"x"}})
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("move to %q: status %d\n%s", to, answer.StatusCode, body)
		}
	}
	s.page(http.StatusNotFound, "/message/none")
	s.page(http.StatusNotFound, "/message/none/body")
	for _, key := range []string{"the ready", ids["ready"].String()} {
		answer, _ := s.ask(http.MethodGet, "/messages?filter="+url.QueryEscape(key), nil, nil)
		if to := answer.Header.Get("Location"); to != "/message/"+ids["ready"].String() {
			t.Errorf("%q leads to %q", key, to)
		}
	}
	s.put(nixie.Message{Queue: "other", Key: "the ready"})
	body := s.page(http.StatusConflict, "/messages?filter="+url.QueryEscape("the ready"))
	if !strings.Contains(body, "/message/"+ids["ready"].String()) {
		t.Errorf("it does not lead to both:\n%s", body)
	}
}

// The page of a message says who holds it, then that it has ended.
func TestMessageThatEndsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Mask: hides{}})
	id := s.put(nixie.Message{Queue: "orders", Key: "seven", Body: []byte(`{"card": "secret"}`),
		Headers: []nixie.Header{{Name: "token", Value: "secret"}}, Priority: 3})
	path := "/message/" + id.String()
	list := s.take("orders")
	s.now.Store(int64(10 * time.Second))
	s.has(path, "has held it since", "10 s", "priority 3", "leased")
	if body := s.page(http.StatusOK, path); strings.Contains(body, "secret") {
		t.Errorf("a secret is shown:\n%s", body)
	}
	if errs := s.store.Settle(t.Context(), []nixie.Settlement{{Delivery: list[0], Verb: nixie.Complete}}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	s.has(path, "succeeded", "Ended")
	answer, body := s.ask(http.MethodPost, path+"/cancel", nil, url.Values{"reason": {"late"}})
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("status %d\n%s", answer.StatusCode, body)
	}
}

// hides is a mask that knows one secret.
type hides struct{}

func (hides) Text(text string) string          { return strings.ReplaceAll(text, "secret", "***") }
func (hides) Header(name, value string) string { return strings.ReplaceAll(value, "secret", "***") }
func (hides) Failure(f *nixie.Failure)         { f.Text = strings.ReplaceAll(f.Text, "secret", "***") }
