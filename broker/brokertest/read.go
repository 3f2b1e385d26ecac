package brokertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// ReadableFixture is a [Fixture] of a broker that can open a [broker.Reader].
type ReadableFixture interface {
	// Read opens a reader of a channel, which remembers done records under the name.
	Read(t testing.TB, channel, name string) broker.Reader
}

// reading returns the fixture if it can open readers, and skips the test otherwise.
func reading(t *testing.T, fixture Fixture) ReadableFixture {
	t.Helper()
	r, ok := fixture.(ReadableFixture)
	if !ok {
		t.Skip("channels of this broker are not read where they lie")
	}
	return r
}

// readAll reads to the end, and marks the n-th record as done if done(n) holds.
func readAll(t *testing.T, r broker.Reader, most int, done func(n int) bool) []broker.Record {
	t.Helper()
	ctx := limited(t)
	var all []broker.Record
	for {
		some, err := r.Next(ctx, most)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			if left := r.Left(); left != 0 {
				t.Errorf("at the end %d are left", left)
			}
			return all
		}
		if len(some) > most {
			t.Fatalf("%d came, and %d were asked for", len(some), most)
		}
		var finished []*broker.Record
		for i := range some {
			if done(len(all)) {
				finished = append(finished, &some[i])
			}
			all = append(all, some[i])
		}
		if err := r.Done(ctx, finished); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(records []broker.Record) (out []string) {
	for _, r := range records {
		out = append(out, string(r.Value))
	}
	slices.Sort(out)
	return out
}

// Done records do not come again, all others do. The next reader also gets records that were added
// later.
func readersRemember(t *testing.T, fixture Fixture) {
	from := reading(t, fixture)
	const n = 40
	put := func(first, n int) {
		for i := range n {
			fixture.Produce(t, broker.Publication{Channel: letters(fixture), Key: fmt.Append(nil, i),
				Value: fmt.Appendf(nil, "value %03d", first+i)})
		}
	}
	put(0, n)
	r := from.Read(t, letters(fixture), "one")
	put(n, 5)
	first := readAll(t, r, 7, func(n int) bool { return n%3 > 0 })
	r.Close()
	if len(first) != n {
		t.Fatalf("%d of %d came", len(first), n)
	}
	var want []string
	for i := range first {
		if i%3 == 0 {
			want = append(want, string(first[i].Value))
		}
	}
	for i := range 5 {
		want = append(want, fmt.Sprintf("value %03d", n+i))
	}
	slices.Sort(want)
	r = from.Read(t, letters(fixture), "one")
	again := readAll(t, r, 100, func(int) bool { return true })
	r.Close()
	if got := texts(again); !slices.Equal(got, want) {
		t.Errorf("came again: %q, want %q", got, want)
	}
	for name, want := range map[string]int{"one": 0, "other": n + 5, "": n + 5} {
		r := from.Read(t, letters(fixture), name)
		if got := readAll(t, r, 100, func(int) bool { return false }); len(got) != want {
			t.Errorf("%d came under name %q, want %d", len(got), name, want)
		}
		r.Close()
	}
}

// Two concurrent readers of one name forget no record that the other one has done.
func readersJoin(t *testing.T, fixture Fixture) {
	from := reading(t, fixture)
	for i := range 30 {
		fixture.Produce(t, broker.Publication{Channel: letters(fixture), Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
	}
	a, b := from.Read(t, letters(fixture), "one"), from.Read(t, letters(fixture), "one")
	defer a.Close()
	defer b.Close()
	ctx := limited(t)
	take := func(r broker.Reader) {
		some, err := r.Next(ctx, 5)
		if err != nil {
			t.Fatal(err)
		}
		var finished []*broker.Record
		for i := range some {
			some[i].Headers = nil
			finished = append(finished, &some[i])
		}
		if err := r.Done(ctx, finished); err != nil {
			t.Fatal(err)
		}
	}
	take(a)
	take(b)
	take(a)
	seen := map[string]bool{}
	for _, r := range []broker.Reader{a, b} {
		for _, rec := range readAll(t, r, 3, func(int) bool { return true }) {
			seen[string(rec.Value)] = true
		}
	}
	last := from.Read(t, letters(fixture), "one")
	defer last.Close()
	if rest := readAll(t, last, 10, func(int) bool { return false }); len(rest) > 0 {
		t.Errorf("%q came again", texts(rest))
	}
}

// An office adopts each letter of a channel once, and whole.
func adoptedOnce(t *testing.T, fixture Fixture) {
	from := reading(t, fixture)
	sent := oddRecords()
	for i := range sent {
		sent[i].Channel = letters(fixture)
		sent[i].Headers = append(slices.Clone(sent[i].Headers),
			broker.RecordHeader{Name: broker.HeaderTopic, Value: []byte(fixture.Source())})
	}
	fixture.Produce(t, sent...)
	st := memory.New(memory.Options{})
	for run := range 2 {
		r := from.Read(t, letters(fixture), "")
		for _, rec := range readAll(t, r, 3, func(int) bool { return false }) {
			l := broker.Adopted("here", &rec, "")
			got, errs := st.Adopt(context.Background(), []nixie.Letter{l}, "ann", "adopted")
			if errs[0] != nil || got[0].Duplicate != (run > 0) {
				t.Errorf("run %d: %+v, %v", run, got[0], errs[0])
			}
		}
		r.Close()
	}
	there, _, err := st.Letters(t.Context(), nixie.Filter{Queues: []string{fixture.Source()}}, store.Page{Whole: true})
	if err != nil || len(there) != len(sent) {
		t.Fatalf("%d of %d are in the office, %v", len(there), len(sent), err)
	}
	for i := range sent {
		if !slices.ContainsFunc(there, func(l nixie.Letter) bool {
			back := broker.FromLetter(&l)
			sent := broker.Record{Key: sent[i].Key, Value: sent[i].Value, Headers: sent[i].Headers[:len(sent[i].Headers)-1]}
			return same(&back.Publication, &sent)
		}) {
			t.Errorf("record with key %q would not go back as it was", sent[i].Key)
		}
	}
}
