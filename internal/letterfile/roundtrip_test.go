package letterfile_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// export writes all letters of a store in a format, latest death first.
func export(t testing.TB, st store.Store, format items.Format) string {
	t.Helper()
	o, err := office.New(office.Config{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	table, err := letterfile.NewCSVWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	var rows []json.RawMessage
	for l, err := range o.AllLetters(context.Background(), nixie.Filter{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		l.Artifacts = nil // a store may repeat the attachments of the last failure
		if err := table.Write(&l, false); err != nil {
			t.Fatal(err)
		}
		row, err := json.Marshal(office.ViewLetterDetail(&l))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if format == items.CSV {
		return b.String()
	}
	b.Reset()
	if format == items.JSON {
		all, err := json.MarshalIndent(rows, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	for _, row := range rows {
		b.Write(append(row, '\n'))
	}
	return b.String()
}

func TestR20_EveryFormatComesInAgain(t *testing.T) {
	temp := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.SliceOfN(rapid.Custom(drawLetter), 1, 4).Draw(rt, "letters")
		first := memory.New(memory.Options{Clock: func() time.Time { return noon }})
		_, errs := first.Adopt(context.Background(), letters, "ann", "drawn")
		if err := errors.Join(errs...); err != nil {
			rt.Fatal(err)
		}
		for _, format := range []items.Format{items.JSON, items.JSONL, items.CSV} {
			text := export(t, first, format)
			r, err := letterfile.Open(letterfile.Options{Path: "-", Stdin: strings.NewReader(text), Format: format, TempDir: temp})
			if err != nil {
				rt.Fatal(err)
			}
			again := memory.New(memory.Options{Clock: func() time.Time { return noon.Add(time.Hour) }})
			var read []nixie.Letter
			for rec, err := r.Next(); err == nil; rec, err = r.Next() {
				if rec.Err != nil {
					rt.Fatalf("%s: %v\n%s", format, rec.Err, text)
				}
				read = append(read, rec.Letter)
			}
			if err := r.Close(); err != nil {
				rt.Fatal(err)
			}
			slices.Reverse(read) // listings begin with the latest death, and then with the latest born
			_, errs := again.Adopt(context.Background(), read, "bob", "read")
			if err := errors.Join(errs...); err != nil {
				rt.Fatal(err)
			}
			if got := export(t, again, format); got != text {
				rt.Fatalf("%s: got\n%s\nwant\n%s", format, got, text)
			}
			if format == items.CSV {
				wantHarmless(rt, text)
			}
		}
	})
}

// wantHarmless fails on cells that a spreadsheet would compute and on characters that a terminal
// would obey.
func wantHarmless(t *rapid.T, text string) {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) {
		t.Fatalf("the table has characters that act: %q", text)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("the table is no CSV: %v: %q", err, text)
	}
	for _, cell := range slices.Concat(rows...) {
		if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.Contains("=+-@\t\r", cell[:1]) {
			t.Fatalf("the table has a formula: %q", cell)
		}
	}
}

// drawText draws texts that are hard to write to a file: markup of CSV, formulas, escapes, control
// characters, other scripts.
func drawText(most int) *rapid.Generator[string] {
	pieces := []string{"", "a", "ü", "日本", ",", `"`, `""`, "'", `'"`, "=1+1", "+1", "-1", "@SUM(A1)", "\t", "\n", "\r\n", "\r", "\\",
		`\u0041`, "{}", "[1", "null",
		"\u202e", "\u2028", "\x1b[31m", "\x7f", "\u009b", "\ufeff", "\U000e0001", "\U0001f600", "\ufffd", " ", ";", "&<>"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, most).Draw(t, "pieces"), "")
	})
}

// drawName draws a key or queue without control characters.
func drawName() *rapid.Generator[string] {
	return rapid.Map(drawText(6), func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				return '.'
			}
			return r
		}, s)
	})
}

func drawMoment(t *rapid.T, name string) time.Time {
	if rapid.Bool().Draw(t, "no "+name) {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(1, 9_214_646_399).Draw(t, name), rapid.Int64Range(0, 999_999_999).Draw(t, name+" ns")).UTC()
}

func drawID(t *rapid.T, name string) nixie.ID {
	return nixie.ID(append(rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(t, name), 1))
}

func drawLetter(t *rapid.T) nixie.Letter {
	text := drawText(8)
	count := rapid.IntRange(0, 1000)
	redrives := count.Draw(t, "redrives")
	deliveries := count.Draw(t, "deliveries")
	l := nixie.Letter{
		ID: drawID(t, "id"),
		Message: nixie.Message{
			ID: drawID(t, "message"), Queue: "q" + drawName().Draw(t, "queue"), Type: drawName().Draw(t, "type"),
			Key:    drawName().Draw(t, "key"),
			Stream: drawName().Draw(t, "stream"), DedupeKey: drawName().Draw(t, "dedupe"),
			Priority: rapid.IntRange(-4, 4).Draw(t, "priority"),
			Body: rapid.OneOf(rapid.Map(text, func(s string) []byte { return []byte(s) }),
				rapid.SliceOfN(rapid.Byte(), 0, 20)).Draw(t, "body"),
			Attempts: rapid.IntRange(0, deliveries).Draw(t, "attempts"), Deliveries: deliveries,
			Crashes:    rapid.IntRange(0, deliveries).Draw(t, "crashes"),
			Generation: redrives + 1, Redrives: redrives, OrderGap: rapid.Bool().Draw(t, "gap"), Steps: drawTexts(t, "steps"),
			EnqueuedAt: drawMoment(t, "enqueued"), ExpiresAt: drawMoment(t, "expires"), FirstReceivedAt: drawMoment(t, "received"),
			EndedAt: drawMoment(t, "ended"),
		},
		Cause: rapid.SampledFrom(nixie.Causes()).Draw(t, "cause"), Class: rapid.SampledFrom(nixie.Classes()).Draw(t, "class"),
		Reason:    rapid.SampledFrom(nixie.Reasons()).Draw(t, "reason"),
		Status:    rapid.SampledFrom([]nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}).Draw(t, "status"),
		Signature: text.Draw(t, "signature"), Fingerprint: text.Draw(t, "fingerprint"), Rule: text.Draw(t, "rule"),
		Note:       text.Draw(t, "note"),
		Redrivable: rapid.Bool().Draw(t, "redrivable"), NeedsReview: rapid.Bool().Draw(t, "review"),
		Revision:      int64(count.Draw(t, "revision")),
		FirstFailedAt: drawMoment(t, "first"), LastFailedAt: drawMoment(t, "last"),
		DiedAt: time.Unix(rapid.Int64Range(1, 9_214_646_399).Draw(t, "died"), 5).UTC(),
	}
	for range rapid.IntRange(0, 2).Draw(t, "headers") {
		l.Message.Headers = append(l.Message.Headers, nixie.Header{Name: "h" + text.Draw(t, "name"), Value: text.Draw(t, "value")})
	}
	if rapid.Bool().Draw(t, "has origin") {
		l.Message.Origin = &nixie.Origin{System: drawName().Draw(t, "system"), MessageID: fmt.Sprint(l.ID),
			Offset:    rapid.Int64().Draw(t, "offset"),
			Partition: rapid.Int32().Draw(t, "partition"), Key: rapid.SampledFrom([][]byte{nil, {}, {0xff, 0}}).Draw(t, "origin key"),
			Timestamp: drawMoment(t, "origin time")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "failures") {
		l.History = append(l.History, drawFailure(t))
	}
	if len(l.History) > 0 {
		l.HistoryDropped = count.Draw(t, "dropped")
	}
	return l
}

func drawTexts(t *rapid.T, name string) []string {
	list := rapid.SliceOfN(drawText(4), 0, 3).Draw(t, name)
	if len(list) == 0 {
		return nil
	}
	return list
}

func drawFailure(t *rapid.T) nixie.Failure {
	text := drawText(8)
	f := nixie.Failure{
		Generation: rapid.IntRange(0, 99).Draw(t, "generation"), Attempt: rapid.IntRange(0, 99).Draw(t, "attempt"),
		StartedAt: drawMoment(t, "started"), FailedAt: time.Unix(rapid.Int64Range(1, 9_214_646_399).Draw(t, "failed"), 1).UTC(),
		NextAt: drawMoment(t, "next"),
		Took:   time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "took")),
		Class:  rapid.SampledFrom(nixie.Classes()).Draw(t, "class"), Reason: rapid.SampledFrom(nixie.Reasons()).Draw(t, "reason"),
		Type: text.Draw(t, "type"), Text: text.Draw(t, "text"), Context: drawTexts(t, "context"), Stack: text.Draw(t, "stack"),
		Step:   text.Draw(t, "step"),
		Worker: text.Draw(t, "worker"), Node: text.Draw(t, "node"), LogLocation: text.Draw(t, "log"), Steps: drawTexts(t, "steps"),
		Decision: rapid.SampledFrom([]nixie.Verb{nixie.Retry, nixie.Bury, ""}).Draw(t, "decision"),
	}
	if rapid.Bool().Draw(t, "has code") {
		code := rapid.Int().Draw(t, "code")
		f.ExitCode = &code
	}
	for range rapid.IntRange(0, 2).Draw(t, "attachments") {
		f.Attachments = append(f.Attachments,
			nixie.Attachment{Name: text.Draw(t, "name"), Data: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "data"),
				Truncated: int64(rapid.IntRange(0, 9).Draw(t, "truncated"))})
	}
	return f
}
