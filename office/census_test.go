package office_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// deaths makes letters of few causes, one of which is a family of many, each with its own time.
func deaths(n int) []nixie.Letter {
	texts := []string{"bank does not answer", "amount is not a number", "shard %c is gone"}
	letters := make([]nixie.Letter, n)
	for i := range letters {
		text := texts[i%len(texts)]
		if i%len(texts) == 2 {
			text = fmt.Sprintf(text, 'a'+rune(i%20))
		}
		reason := []nixie.Reason{nixie.ReasonTimeout, nixie.ReasonValidation, nixie.ReasonHandler}[i%len(texts)]
		at := time.UnixMilli(1_700_000_000_000 + int64(i)*60_000).UTC()
		f := nixie.Failure{Generation: 1, Attempt: 1, FailedAt: at, Class: nixie.ClassUnknown, Reason: reason, Text: text,
			Decision: nixie.Bury}
		l := &letters[i]
		*l = nixie.Letter{
			ID: nixie.ID{6: 0x70, 8: 0x80, 14: byte(i >> 8), 15: byte(i)},
			Message: nixie.Message{Queue: fmt.Sprint("q", i%2), Type: []string{"", "pay", "ship"}[i%len(texts)], Key: fmt.Sprint("k", i),
				State: nixie.Dead, LastFailure: text, LastReason: reason, EnqueuedAt: at, EndedAt: at},
			Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Redrivable: true, Class: f.Class, Reason: reason,
			FirstFailedAt: at, LastFailedAt: at, DiedAt: at, History: []nixie.Failure{f},
		}
		l.Signature, l.Fingerprint = policy.SignatureOf(policy.NamedAfter(l.History), &l.Message)
	}
	return letters
}

// A census says of letters what the office says that has them, in any order.
func TestCensus(t *testing.T) {
	letters := deaths(300)
	st := memory.New(memory.Options{})
	if _, errs := st.Adopt(context.Background(), letters, "ann", "adopted"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	o, err := office.New(office.Config{Store: st, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := o.Analyze(t.Context(), nixie.Filter{}, store.ScanAll)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Families) != 1 || len(want.Groups) < 10 {
		t.Fatalf("%d families, %d groups", len(want.Families), len(want.Groups))
	}
	var forward, shuffled office.Census
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(letters)) {
		if err := shuffled.Add(&letters[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range letters {
		if err := forward.Add(&letters[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := forward.Analysis(); !reflect.DeepEqual(got, want) {
		t.Errorf("in order:\n%+v\nwant\n%+v", got, want)
	}
	got := shuffled.Analysis()
	for i := range got.Groups { // of those that did not die last, it names which it met
		if g := &got.Groups[i]; len(g.Examples) != len(want.Groups[i].Examples) || g.Examples[0] != want.Groups[i].Examples[0] {
			t.Errorf("examples %v, want %v", g.Examples, want.Groups[i].Examples)
		}
		got.Groups[i].Examples, got.Groups[i].Keys = want.Groups[i].Examples, want.Groups[i].Keys
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("in any order:\n%+v\nwant\n%+v", got, want)
	}
	if got := new(office.Census).Analysis(); got.Letters != 0 || got.Groups == nil || got.Families == nil || got.ByHour == nil {
		t.Errorf("of no letters: %+v", got)
	}
}

// What a census keeps depends on its causes and not on its letters, and it refuses too many.
func TestCensusIsBounded(t *testing.T) {
	var c office.Census
	letters := deaths(300)
	for range 1000 {
		for i := range letters {
			letters[i].Message.Key = "one more" // a text of its own would be kept by an example
			if err := c.Add(&letters[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		for i := range letters {
			if err := c.Add(&letters[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("300,000 more letters of the same causes cost %d bytes", grown)
	}
	l, refused := letters[0], error(nil)
	for i := 0; refused == nil && i <= office.MaxCensus; i++ {
		l.Fingerprint = fmt.Sprint("v3-", i)
		refused = c.Add(&l)
	}
	if nixie.CodeOf(refused) != nixie.CodeLimit {
		t.Errorf("more causes than it may keep: %v", refused)
	}
}
