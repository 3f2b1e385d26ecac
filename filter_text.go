package nixie

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// IsZero reports whether no part of the filter is set, so that it matches all.
func (f Filter) IsZero() bool {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		part := v.Field(i)
		if part.Kind() == reflect.Slice && part.Len() == 0 { // matches like nil
			continue
		}
		if !part.IsZero() {
			return false
		}
	}
	return true
}

// String is the text that [ParseFilter] reads as the same filter, in one form
// whatever the person wrote. Moments are in UTC. It is the empty text exactly
// for the zero filter. Of a filter made by hand it may be longer than
// [MaxFilterText], or hold values that ParseFilter refuses.
func (f Filter) String() string {
	var t filterText
	list(&t, "id", f.IDs, ID.String)
	list(&t, "queue", f.Queues, asIs[string])
	list(&t, "type", f.Types, asIs[string])
	list(&t, "key", f.Keys, asIs[string])
	list(&t, "stream", f.Streams, asIs[string])
	list(&t, "status", f.Statuses, asIs[Status])
	list(&t, "state", f.States, asIs[State])
	list(&t, "reason", f.Reasons, asIs[Reason])
	list(&t, "class", f.Classes, asIs[Class])
	list(&t, "cause", f.Causes, asIs[Cause])
	t.one("signature", f.Signature)
	t.one("fingerprint", f.Fingerprint)
	t.one("text", f.Text)
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
	t.one("operation", f.Operation.String())
	return t.String()
}

type filterText struct{ strings.Builder }

// term adds a term whose value needs no quotes.
func (t *filterText) term(key, value string) {
	if t.Len() > 0 {
		t.WriteByte(' ')
	}
	t.WriteString(key)
	t.WriteByte(':')
	t.WriteString(value)
}

func (t *filterText) one(key, value string) {
	if value != "" {
		t.term(key, quoteFilter(value))
	}
}

func (t *filterText) yesNo(key string, b *bool) {
	if b == nil {
		return
	}
	if *b {
		t.term(key, "yes")
	} else {
		t.term(key, "no")
	}
}

func (t *filterText) times(key string, b Times) {
	if !b.After.IsZero() {
		t.term(key, ">="+b.After.UTC().Format(time.RFC3339Nano))
	}
	if !b.Before.IsZero() {
		t.term(key, "<"+b.Before.UTC().Format(time.RFC3339Nano))
	}
}

func (t *filterText) number(key string, r Range) {
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

func list[T any](t *filterText, key string, values []T, text func(T) string) {
	if len(values) == 0 {
		return
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quoteFilter(text(v))
	}
	t.term(key, strings.Join(quoted, ","))
}

func asIs[T ~string](v T) string { return string(v) }

func quoteFilter(value string) string {
	if value != "" && !strings.ContainsAny(value, " \t\n\r,\"\\") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
