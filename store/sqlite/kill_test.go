package sqlite_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// killsOfOne is the number of kills in a scenario.
const killsOfOne = 8

// TestKills kills processes with kill -9, in one scenario after the other, each
// on a store of its own. What was acknowledged stays, each time, and what is left
// is worked off at the end.
func TestKills(t *testing.T) {
	scenarios := []struct {
		name string
		run  func(*killing)
	}{
		{"one process", func(k *killing) { k.again("work", "") }},
		{"one of three at once", (*killing).oneOfThree},
		{"during recovery", func(k *killing) { k.again("reopen", "opening") }},
		{"during redrive", func(k *killing) { k.again("redrive", "redriving") }},
		{"during prune", (*killing).prune},
		{"during checkpoint", func(k *killing) { k.again("checkpoint", "checkpointing") }},
		{"in a transaction", (*killing).inTransaction},
		{"after a completion", (*killing).afterCompletion},
	}
	proof.Run(t, "kills", func(t *testing.T, seed uint64) int {
		scenario := scenarios[(seed-1)%uint64(len(scenarios))]
		k := &killing{T: t, seed: int64(seed), path: storePath(t), rng: rand.New(rand.NewPCG(seed, 0)), heard: newPromises()}
		scenario.run(k)
		t.Logf("%s: %d kills, %d acknowledgements, %d messages, %d ends, %d redrives",
			scenario.name, k.kills, k.heard.said, len(k.heard.enqueued), len(k.heard.ends), len(k.heard.redriven))
		return k.kills
	})
}

// killing is one scenario. Its seed makes it repeatable as far as the machine
// allows.
type killing struct {
	*testing.T
	seed    int64
	path    string
	rng     *rand.Rand
	heard   *promises
	started int64
	kills   int
}

// start starts a process with a new seed.
func (k *killing) start(role string) *child.Process {
	k.Helper()
	k.started++
	return startChild(k.T, role, k.path, k.seed<<16+k.started)
}

// kill ends a process after some lines and, unless it is empty, in the middle of
// what a word announces.
func (k *killing) kill(p *child.Process, lines int, at string) {
	k.Helper()
	for said := ""; lines > 0 || at != "" && said != at; lines-- {
		words := p.Line()
		said = words[0]
		k.heard.hear(words)
	}
	if at != "" {
		k.busy(k.rng.IntN(400))
	}
	for _, words := range p.Kill() {
		k.heard.hear(words)
	}
	k.kills++
}

// busy works for some microseconds, so that kills do not all come at the same one.
func (k *killing) busy(n int) {
	var sum [sha256.Size]byte
	for range n {
		sum = sha256.Sum256(append(sum[:], make([]byte, 1024)...))
	}
	k.heard.noise = sum[0]
}

// again kills the only user of a store again and again. The next process finds
// it as the killed one left it.
func (k *killing) again(role, at string) {
	for k.kills < killsOfOne {
		lines := 1 + k.rng.IntN(80)
		if role == "reopen" {
			k.kill(k.start("work"), lines, "")
			lines = 0
		}
		k.kill(k.start(role), lines, at)
		if k.kills != killsOfOne/2 {
			continue
		}
		s, err := sqlite.Open(k.path, sqlite.Options{Reserve: -1})
		must(k.T, err)
		k.heard.kept(k.T, s)
		must(k.T, s.Close())
	}
	finish(k.T, k.path, k.heard)
}

// oneOfThree kills alternately three processes that work on one store at once.
func (k *killing) oneOfThree() {
	var running [3]*child.Process
	for i := range running {
		running[i] = k.start("work")
	}
	for i := 0; k.kills < killsOfOne-len(running); i++ {
		k.kill(running[i%3], 1+k.rng.IntN(60), "")
		running[i%3] = k.start("work")
	}
	for _, p := range running {
		k.kill(p, 0, "")
	}
	finish(k.T, k.path, k.heard)
}

// prune kills processes that remove what is old, on a fast clock. What was
// acknowledged is there or was pruned.
func (k *killing) prune() {
	must(k.T, os.WriteFile(k.path+startMark, nil, 0o600))
	k.heard.prunes = true
	s := open(k.T, k.path, sqlite.Options{Reserve: -1})
	must(k.T, store.Configure(k.Context(), s, "q", nixie.QueueSettings{
		Retention: nixie.MinRetention, LetterRetention: nixie.MinRetention, AuditRetention: nixie.MinRetention,
	}, "ann", ""))
	must(k.T, s.Close())
	k.again("prune", "pruning")
}

// promises is everything that processes were told had happened.
type promises struct {
	enqueued map[string]string // key by message
	leases   map[string]bool   // message and number of the lease
	ends     map[string]string // message and generation: how it ended
	failures map[string]string // message and text: verb
	steps    map[string]string // message and step
	redriven map[string]int    // letter: times
	told     map[string]bool   // keys of what was committed in a transaction of the process
	broken   []string
	said     int
	prunes   bool // what has ended may be gone
	noise    byte
}

func newPromises() *promises {
	return &promises{
		enqueued: map[string]string{}, leases: map[string]bool{}, ends: map[string]string{},
		failures: map[string]string{}, steps: map[string]string{}, redriven: map[string]int{}, told: map[string]bool{},
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
	case "ordered", "committed":
		p.told[words[1]] = true
	case "step":
		p.steps[words[1]+" "+words[2]] = words[2]
	case "redriven":
		p.redriven[words[1]]++
	}
}

func (p *promises) end(id, generation, how string) {
	ended := id + " " + generation
	if before := p.ends[ended]; before != "" {
		p.broken = append(p.broken, fmt.Sprintf("message and generation %s ended by %s and by %s", ended, before, how))
	}
	p.ends[ended] = how
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
	missing := 0
	for id, key := range p.enqueued {
		switch r, there := records[id]; {
		case !there && p.prunes:
			missing++
		case !there || r.Key != key:
			t.Errorf("message %s (%s) was acknowledged and is not there", id, key)
		}
	}
	if n := pruned(t, s); int64(missing) > n {
		t.Errorf("%d messages are not there, %d were pruned", missing, n)
	}
	gone := func(id string) bool {
		_, there := records[id]
		return p.prunes && !there
	}
	for ended, how := range p.ends {
		var id string
		var generation int
		if _, err := fmt.Sscan(ended, &id, &generation); err != nil {
			t.Fatal(err)
		}
		if gone(id) {
			continue
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
		if n != 1 && records[id].HistoryDropped == 0 && !gone(id) {
			t.Errorf("message %s has %q %d times in its history", id, text, n)
		}
	}
	for key, step := range p.steps {
		if !slices.Contains(records[key[:36]].Steps, step) && !gone(key[:36]) {
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

// endKept says whether the end of a generation of a message is still there, or has
// led to a later generation.
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
	t.Errorf("message %s ended generation %d by %s and is %s in generation %d", r.ID, generation, how, r.State, r.Generation)
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

// finish works off what the killed ones left, and reads once more.
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
			heard.hear([]string{"settled", ds[i].ID.String(), fmt.Sprint(ds[i].Lease.Number), fmt.Sprint(ds[i].Generation),
				string(nixie.Complete)})
		}
	}
	heard.kept(t, s)
}

// pruned returns the number of messages that the store says it has removed.
func pruned(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	qs, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	n := int64(0)
	for i := range qs {
		n += qs[i].Pruned
	}
	return n
}

// startMark is added to the path of a store: a file from whose time on a fast
// clock runs.
const startMark = "-start"

// fastClock makes a minute of what is 60 ms for others, for all processes of a
// store alike.
func fastClock(path string) (func() time.Time, error) {
	info, err := os.Stat(path + startMark)
	if err != nil {
		return nil, err
	}
	start := info.ModTime()
	return func() time.Time { return start.Add(1000 * time.Since(start)) }, nil
}
