package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
)

func TestLettersAreDiscardedAndRestored(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	s.has("/letters", "All 3 that match:", "/change?verb=discard", "Select the 3 letters of this page")
	if body := s.page(http.StatusOK, "/letters?select=page"); strings.Count(body, ` checked> <a href="/letter/`) != 3 {
		t.Errorf("the page is not selected:\n%s", body)
	}
	s.has("/change?verb=discard&filter=queue:orders", "Discard 2 letters", "Reason, for the audit", "order &lt;n&gt;: no answer")
	reason := url.Values{"reason": {"they are old"}}
	for path, want := range map[string]string{
		"/change/run?verb=discard&filter=queue:orders": "reason is empty", "/change/run?verb=eat": "cannot be changed by",
		"/change/run?verb=hold&filter=raeson:x": "the filter cannot be read", "/change/run?verb=hold&id=one": "one",
	} {
		form := reason
		if strings.Contains(want, "reason") {
			form = url.Values{}
		}
		answer, body := s.ask(http.MethodPost, path, nil, form)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: status %d\n%s", path, answer.StatusCode, body)
		}
	}
	operation := s.post("/change/run?verb=discard&filter=queue:orders", reason)
	s.has(operation, "discard of 2 letters", "they are old", "<dt>done</dt><dd>2</dd>")
	l := "/letter/" + id(3).String()
	s.has(l, "discarded", "verb=restore")
	s.post("/change/run?verb=restore&id="+id(3).String(), url.Values{"reason": {"a customer does"}})
	s.has(l, "open", "verb=hold")
	s.post("/change/run?verb=hold&id="+id(3).String(), url.Values{"reason": {"ask first"}})
	s.has(l, "review", "verb=unhold")
	s.post("/change/run?verb=unhold&id="+id(3).String(), url.Values{"reason": {"it is fine"}})
	s.has(l, "open", "may go")
	s.post("/change/run?verb=note&id="+id(3).String(), url.Values{"reason": {"called the bank"}})
	s.has(l, "called the bank")
}

func TestColumnsAreChosen(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	s.has("/letters?col=type&col=last+error&col=none", `<th scope="col">type</th>`, "order 1: refused", `value="type" checked`)
	if body := s.page(http.StatusOK, "/letters?col=type"); strings.Contains(body, `<th scope="col" class="wide">cause</th>`) {
		t.Errorf("it has a column that was not chosen:\n%s", body)
	}
	s.has("/letters?filter=queue:orders", `<option value="queue:orders reason:timeout">`, `list="terms"`)
}

func TestBodyIsATree(t *testing.T) {
	t.Parallel()
	l := letter(1, "orders", "timeout: slow", "slow", 0)
	l.Message.Body = []byte(`{"z": [1, {"deep": {"er": true}}], "a": null, "n": 12345678901234567890, "<b>": "\u202e"}`)
	bad := letter(2, "orders", "timeout: slow", "slow", time.Minute)
	bad.Message.Body = []byte(`{"a": 1} {"b": 2}`)
	wide := letter(3, "orders", "timeout: slow", "slow", time.Minute)
	wide.Message.Body = []byte("[" + strings.TrimSuffix(strings.Repeat("1,", 5_000), ",") + "]")
	deep := letter(4, "orders", "timeout: slow", "slow", time.Minute)
	deep.Message.Body = []byte(strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000))
	s := open(t, console.Options{}, l, bad, wide, deep)
	at := func(n int) string { return "/letter/" + id(n).String() }
	s.has(at(3), `<details open><summary data-count="4"><code>{`,
		"<b><bdi>&#34;deep&#34;</bdi></b>: ", "12345678901234567890", "&lt;b&gt;", `\u202e`)
	s.has(at(5), "<pre class=\"body\">\n{&#34;a&#34;: 1} {")
	s.has(at(7), `data-count="2`+"\u202f"+`000+"`, "More is left out")
	s.has(at(9), "More is left out")
	s.has(at(3)+"?as=json", "&#34;deep&#34;: {")
	s.has(at(3)+"?as=hex", "7b 22 7a 22")
}

// A body of many levels is no larger as JSON than as it is: indents would grow with their square.
func TestDeepBodyStaysSmall(t *testing.T) {
	t.Parallel()
	deep := letter(1, "orders", "timeout: slow", "slow", 0)
	deep.Message.Body = []byte(strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000))
	flat := letter(2, "orders", "timeout: slow", "slow", 0)
	texts := `{"text": "` + strings.Repeat(`\"[`, 100) + `", "in": `
	flat.Message.Body = []byte(texts + strings.Repeat("[", 31) + strings.Repeat("]", 31) + "}")
	s := open(t, console.Options{}, deep, flat)
	if page := s.page(http.StatusOK, "/letter/"+deep.ID.String()+"?as=json"); len(page) > 30_000 || !strings.Contains(page, "\n[[[[") {
		t.Errorf("the page has %d bytes:\n%.9000s", len(page), page)
	}
	s.has("/letter/"+flat.ID.String()+"?as=json", "&#34;in&#34;: [\n    [\n")
}

func TestSecretsOfABodyAreHidden(t *testing.T) {
	t.Parallel()
	l := letter(1, "orders", "timeout: slow", "slow", 0)
	l.Message.Body = []byte(`{"token": "s3cret"}`)
	s := open(t, console.Options{Mask: starred{}}, l)
	for _, as := range []string{"tree", "json", "raw", "hex"} {
		body := s.page(http.StatusOK, "/letter/"+l.ID.String()+"?as="+as)
		if strings.Contains(body, "s3cret") || strings.Contains(body, "73 33 63 72 65 74") {
			t.Errorf("as %s it shows a secret:\n%s", as, body)
		}
	}
}

func TestQueueIsDrained(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	if _, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: "orders"}); err != nil {
		t.Fatal(err)
	}
	s.has("/queue?name=orders", "its workers finish the 1 message that it has")
	s.has(s.post("/queue/drain?name=orders", url.Values{"reason": {"it moves"}}), "takes no new messages", "It drains: 1 message left.")
	s.work("orders", nil)
	s.has("/queue?name=orders", "It is drained: no message is left.")
	if answer, _ := s.ask(http.MethodPost, "/queue/drain?name=orders", nil, url.Values{}); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", answer.StatusCode)
	}
}

func TestFlowIsMeasured(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		w.has("/queues", `data-name="New / ended, 1 min">–</td>`)
		for range 30 {
			if _, err := w.store.Enqueue(t.Context(), nixie.Message{Queue: "orders"}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(30 * time.Second)
		w.has("/queues", `data-name="New / ended, 1 min">60 / 0</td>`)
		w.has("/", "<dd title=\"over the last 30s\">60 / 0</dd>")
		w.has("/queue?name=orders", "<dd>60 / 0</dd>")
		w.pass(time.Hour)
		w.has("/queues", `data-name="New / ended, 1 min">–</td>`)
	})
}

func TestAdviceIsForPages(t *testing.T) {
	t.Parallel()
	l := letter(1, "orders", "throttled: slow down", "slow down", time.Minute)
	l.Reason, l.History[0].Reason = nixie.ReasonThrottled, nixie.ReasonThrottled
	s := open(t, console.Options{}, l)
	for _, path := range []string{"/groups", "/redrive"} {
		s.has(path, "redrive slowly, with a limit of letters per second")
	}
	if text := office.Advice(nixie.ReasonThrottled); text != "redrive slowly, with --rate" {
		t.Errorf("for commands it is %q", text)
	}
	if body := s.page(http.StatusNotFound, "/queue?name=none"); !strings.Contains(body, "the page Queues shows what there is") {
		t.Errorf("an error names a command:\n%s", body)
	}
}
