//go:build unix

package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// killSeed makes the runs of a failure repeatable as far as the machine allows.
const killSeed = 20260504

// promises is everything that processes were told had happened.
type promises struct {
	enqueued map[string]string // key by message
	leases   map[string]bool   // message and number of the lease
	ends     map[string]string // message and generation: how it ended
	failures map[string]string // message and text: verb
	steps    map[string]string // message and step
	redriven map[string]int    // letter: times
	broken   []string
	said     int
}

func newPromises() *promises {
	return &promises{
		enqueued: map[string]string{}, leases: map[string]bool{}, ends: map[string]string{},
		failures: map[string]string{}, steps: map[string]string{}, redriven: map[string]int{},
	}
}

func (p *promises) hear(words []string) {
	p.said++
	switch words[0] {
	case "enqueued":
		if words[3] == "false" {
			p.enqueued[words[1]] = words[2]
		}
	case "claimed":
		lease := words[1] + " " + words[2]
		if p.leases[lease] {
			p.broken = append(p.broken, "two holders have lease "+lease)
		}
		p.leases[lease] = true
	case "settled":
		switch verb := nixie.Verb(words[4]); verb {
		case nixie.Retry:
			p.failures[words[1]+" failure of lease "+words[2]] = words[4]
		case nixie.Complete, nixie.Discard, nixie.Bury, nixie.Hold:
			p.end(words[1], words[3], words[4])
		}
	case "canceled":
		p.end(words[1], words[3], "canceled")
	case "step":
		p.steps[words[1]+" "+words[2]] = words[2]
	case "redriven":
		p.redriven[words[1]]++
	}
}

func (p *promises) end(id, generation, how string) {
	life := id + " " + generation
	if before := p.ends[life]; before != "" {
		p.broken = append(p.broken, fmt.Sprintf("life %s ended by %s and by %s", life, before, how))
	}
	p.ends[life] = how
}

// kept compares what was promised with what a store holds.
func (p *promises) kept(t *testing.T, s *sqlite.Store) {
	t.Helper()
	storetest.Invariants(t, s)
	for _, b := range p.broken {
		t.Error(b)
	}
	records := map[string]store.Record{}
	eachPage(t, func(page store.Page) (string, error) {
		page.Whole = true
		rs, next, err := s.Messages(context.Background(), nixie.Filter{}, page)
		for _, r := range rs {
			records[r.ID.String()] = r
		}
		return next, err
	})
	for id, key := range p.enqueued {
		if r, there := records[id]; !there || r.Key != key {
			t.Errorf("message %s (%s) was acknowledged and is not there", id, key)
		}
	}
	for life, how := range p.ends {
		var id string
		var generation int
		if _, err := fmt.Sscan(life, &id, &generation); err != nil {
			t.Fatal(err)
		}
		p.endKept(t, records[id], generation, how)
	}
	for key := range p.failures {
		id, text := key[:36], key[37:]
		n := 0
		for _, f := range records[id].History {
			if f.Text == text {
				n++
			}
		}
		if n != 1 && records[id].HistoryDropped == 0 {
			t.Errorf("message %s has %q %d times in its history", id, text, n)
		}
	}
	for key, step := range p.steps {
		if !slices.Contains(records[key[:36]].Steps, step) {
			t.Errorf("message %s lost %s", key[:36], step)
		}
	}
	eachPage(t, func(page store.Page) (string, error) {
		ls, next, err := s.Letters(context.Background(), nixie.Filter{}, page)
		for i := range ls {
			if want := p.redriven[ls[i].ID.String()]; ls[i].Message.Redrives < want {
				t.Errorf("letter %s was redriven %d times and counts %d", ls[i].ID, want, ls[i].Message.Redrives)
			}
		}
		return next, err
	})
}

// endKept says whether an end of one life of a message is still there, or has
// led to a later life.
func (p *promises) endKept(t *testing.T, r store.Record, generation int, how string) {
	t.Helper()
	want := map[string]nixie.State{
		string(nixie.Complete): nixie.Succeeded, string(nixie.Discard): nixie.Discarded, "canceled": nixie.Canceled,
		string(nixie.Bury): nixie.Dead, string(nixie.Hold): nixie.Dead,
	}[how]
	again := want == nixie.Dead && r.Generation > generation
	if r.Generation == generation && r.State == want || again {
		return
	}
	t.Errorf("message %s ended life %d by %s and is %s in life %d", r.ID, generation, how, r.State, r.Generation)
}

func eachPage(t *testing.T, list func(store.Page) (next string, err error)) {
	t.Helper()
	page := store.Page{Limit: 1000}
	for {
		next, err := list(page)
		must(t, err)
		if next == "" {
			return
		}
		page.Cursor = next
	}
}

// TestKillOneProcess kills the only user of a store again and again. What was
// acknowledged stays, each time.
func TestKillOneProcess(t *testing.T) {
	const kills = 24
	path := storePath(t)
	rng := rand.New(rand.NewPCG(killSeed, 0))
	heard := newPromises()
	for i := range kills {
		child := startChild(t, "life", path, int64(i))
		for range 1 + rng.IntN(120) {
			heard.hear(child.line())
		}
		for _, words := range child.kill() {
			heard.hear(words)
		}
		if i%4 != 3 {
			continue // the next process finds it as the killed one left it
		}
		s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
		must(t, err)
		heard.kept(t, s)
		must(t, s.Close())
	}
	finish(t, path, heard)
	t.Logf("%d kills, %d acknowledgements, %d messages, %d ends, %d redrives", kills, heard.said, len(heard.enqueued), len(heard.ends), len(heard.redriven))
}

// TestKillOneOfThree kills three processes in turn that work on one store at
// once.
func TestKillOneOfThree(t *testing.T) {
	const kills = 21
	path := storePath(t)
	rng := rand.New(rand.NewPCG(killSeed, 1))
	heard := newPromises()
	var running [3]*process
	for i := range running {
		running[i] = startChild(t, "life", path, int64(1000+i))
	}
	for i := range kills {
		p := running[i%3]
		for range 1 + rng.IntN(60) {
			heard.hear(p.line())
		}
		for _, words := range p.kill() {
			heard.hear(words)
		}
		running[i%3] = startChild(t, "life", path, int64(2000+i))
	}
	for _, p := range running {
		for _, words := range p.kill() {
			heard.hear(words)
		}
	}
	finish(t, path, heard)
	t.Logf("%d kills, %d acknowledgements, %d messages, %d ends, %d redrives", kills, heard.said, len(heard.enqueued), len(heard.ends), len(heard.redriven))
}

// finish works off what the killed ones left, and looks once more.
func finish(t *testing.T, path string, heard *promises) {
	t.Helper()
	s := open(t, path, sqlite.Options{Reserve: -1})
	heard.kept(t, s)
	source := store.NewSource(s, "q")
	for unfinished(t, s) > 0 {
		ds, err := source.Receive(t.Context(), nixie.Want{Max: 1000, Wait: patience})
		must(t, err)
		if len(ds) == 0 {
			t.Fatal("nothing more to claim, but not all have ended")
		}
		sts := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			heard.hear([]string{"claimed", d.ID.String(), fmt.Sprint(d.Lease.Number), fmt.Sprint(d.Generation)})
			sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		for i, err := range s.Settle(t.Context(), sts) {
			must(t, err)
			heard.hear([]string{"settled", ds[i].ID.String(), fmt.Sprint(ds[i].Lease.Number), fmt.Sprint(ds[i].Generation), string(nixie.Complete)})
		}
	}
	heard.kept(t, s)
}

func unfinished(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	qs, err := s.Queues(t.Context())
	must(t, err)
	n := int64(0)
	for i := range qs {
		n += qs[i].Unfinished()
	}
	return n
}

// storePath is a place for a store that processes share.
func storePath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(fastFolder(), "nixie-processes-") //nolint:usetesting // it lies on another file system
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "store.db")
}
