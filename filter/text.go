package filter

import (
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Text writes a filter in the one form that [Parse] reads as the same filter again. Moments
// are in UTC. Only the zero filter gives the empty text. The text of a filter that was not
// parsed may be longer than [MaxText], or have values that Parse refuses.
func Text(f nixie.Filter) string {
	var t builder
	var ids []string
	for _, id := range f.IDs {
		ids = append(ids, id.String())
	}
	list(&t, "id", append(ids, f.Endings...), asIs[string])
	list(&t, "queue", f.Queues, asIs[string])
	list(&t, "type", f.Types, asIs[string])
	list(&t, "key", f.Keys, asIs[string])
	list(&t, "stream", f.Streams, asIs[string])
	list(&t, "status", f.Statuses, asIs[nixie.Status])
	list(&t, "state", f.States, asIs[nixie.State])
	list(&t, "reason", f.Reasons, asIs[nixie.Reason])
	list(&t, "class", f.Classes, asIs[nixie.Class])
	list(&t, "cause", f.Causes, asIs[nixie.Cause])
	list(&t, "fingerprint", f.Fingerprints, asIs[string])
	t.one("signature", f.Signature)
	t.one("text", f.Text)
	list(&t, "error-type", f.ErrorTypes, asIs[string])
	t.yesNo("redrivable", f.Redrivable)
	t.yesNo("needs_review", f.NeedsReview)
	if f.Age.Min != 0 {
		t.term("age", ">="+f.Age.Min.String())
	}
	if f.Age.Max != 0 {
		t.term("age", "<="+f.Age.Max.String())
	}
	t.times("died", f.Died)
	t.times("due", f.Due)
	t.times("first_failed", f.FirstFailed)
	t.times("last_failed", f.LastFailed)
	t.number("redrives", f.Redrives)
	t.number("attempts", f.Attempts)
	t.number("deliveries", f.Deliveries)
	t.number("crashes", f.Crashes)
	operation := f.Operation.String()
	if ending, is := operationEnding(f.Operation); is {
		operation = ending
	}
	t.one("operation", operation)
	for _, h := range f.Headers {
		t.one("header", h.Name+"="+h.Value)
	}
	for _, n := range f.Not {
		t.word("-" + Text(n))
	}
	return t.String()
}

type builder struct{ strings.Builder }

// term adds a term whose value needs no quotes.
func (t *builder) term(key, value string) {
	t.word(key + ":" + value)
}

func (t *builder) word(text string) {
	if t.Len() > 0 {
		t.WriteByte(' ')
	}
	t.WriteString(text)
}

func (t *builder) one(key, value string) {
	if value != "" {
		t.term(key, quote(value))
	}
}

func (t *builder) yesNo(key string, b *bool) {
	if b == nil {
		return
	}
	if *b {
		t.term(key, "yes")
	} else {
		t.term(key, "no")
	}
}

func (t *builder) times(key string, b nixie.Times) {
	if !b.After.IsZero() {
		t.term(key, ">="+b.After.UTC().Format(time.RFC3339Nano))
	}
	if !b.Before.IsZero() {
		t.term(key, "<"+b.Before.UTC().Format(time.RFC3339Nano))
	}
}

func (t *builder) number(key string, r nixie.Range) {
	if r.Min != nil && r.Max != nil && *r.Min == *r.Max {
		t.term(key, strconv.FormatInt(*r.Min, 10))
		return
	}
	if r.Min != nil {
		t.term(key, ">="+strconv.FormatInt(*r.Min, 10))
	}
	if r.Max != nil {
		t.term(key, "<="+strconv.FormatInt(*r.Max, 10))
	}
}

func list[T any](t *builder, key string, values []T, text func(T) string) {
	if len(values) == 0 {
		return
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(text(v))
	}
	t.term(key, strings.Join(quoted, ","))
}

func asIs[T ~string](v T) string { return string(v) }

func quote(value string) string {
	if value != "" && !strings.ContainsAny(value, " \t\n\r,\"\\") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
