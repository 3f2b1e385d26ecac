//go:build unix

package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/redrive"
)

// Three consuming processes are killed and started again. One in a hundred records is malformed,
// one in twenty fails the first time, and one kills its consumer. The test counts what became of
// each record. Then it redrives the dead ones: repaired ones succeed, the others die until they are
// in quarantine.
func TestShow1_ConsumersAreKilled(t *testing.T) {
	t.Parallel()
	proof.Run(t, "kafka-show", func(t *testing.T, seed uint64) int {
		records := proof.Count("kafka-show")
		if proof.IsDeep() {
			return newShow(t, actual(t), records, 3*time.Second).run(seed)
		}
		return newShow(t, fake(t), records, time.Second).run(seed)
	})
}

// show is one run of this test.
type show struct {
	*testing.T
	*fixture
	ctx     context.Context
	records int
	session time.Duration // after which a group forgets a consumer
	ledger  *ledger
	team    []*consumer
	deaths  int // consumers that the poison killed
}

// showLimit bounds a run.
const showLimit = 5 * time.Minute

func newShow(t *testing.T, b *fixture, records int, session time.Duration) *show {
	b.stages = stagesOf()
	b.create(t, 3, nil, b.stages[0].Of(b.source), b.source+".quarantine")
	ctx, cancel := context.WithTimeout(t.Context(), showLimit)
	t.Cleanup(cancel)
	return &show{T: t, fixture: b, ctx: ctx, records: records, session: session, ledger: newLedger(b)}
}

func (s *show) run(seed uint64) int {
	s.produce(rand.New(rand.NewPCG(seed, 11)))
	for range 3 {
		s.team = append(s.team, s.consume(s, s.ledger, s.session))
	}
	for _, killed := range []int{1, 2, 3} {
		goal := min(s.ledger.count()+s.records/10, s.records*9/10) // the consumers may be far ahead of this test
		s.until(func() bool { return s.ledger.count() >= goal })
		for _, c := range s.team[:killed] {
			c.kill()
		}
		s.check(fmt.Sprint(killed, " of 3 consumers killed"))
	}
	s.until(s.idle)
	a := s.check(fmt.Sprintf("in the end, %d consumers more killed by the poison", s.deaths))
	if want := s.records/100 + 1; a.letters != want || a.missing+a.waiting > 0 || a.committed != int64(s.records) || s.deaths == 0 {
		s.Errorf("not %d letters, or not all committed", want)
	}
	s.poisoned()
	s.redrive()
	for _, c := range s.team {
		c.kill()
	}
	s.stopped()
	return s.records
}

// produce fills the source, with the poison after a third.
func (s *show) produce(rng *rand.Rand) {
	for i := range s.records {
		word := fine
		switch {
		case i%100 == 50:
			word = malformed
		case i%20 == 7:
			word = flaky
		case i == s.records/3&^1:
			word = poison
		}
		s.client.Produce(s.ctx, &kgo.Record{Topic: s.source, Key: fmt.Append(nil, rng.IntN(1_000)),
			Value: fmt.Appendf(nil, "%s %06d", word, i)}, nil)
	}
	if err := s.client.Flush(s.ctx); err != nil {
		s.Fatal(err)
	}
}

// until waits for a condition, and starts ended consumers again.
func (s *show) until(what func() bool) {
	s.Helper()
	for !what() {
		for i, c := range s.team {
			if c.over() {
				s.deaths++
				c.kill()
				s.team[i] = s.consume(s, s.ledger, s.session)
			}
		}
		if sleep(s.ctx, 10*time.Millisecond); s.ctx.Err() != nil {
			s.Fatal(s.ledger.account(limited(s), s))
		}
	}
}

// idle reports whether nothing is left to do.
func (s *show) idle() bool {
	a := s.ledger.account(s.ctx, s)
	return a.waiting+a.missing == 0 && a.committed == int64(a.records)
}

// check prints the account. A consumer that still runs may have done more than the test has read,
// so check repeats it. It starts the consumers again that were killed for it.
func (s *show) check(when string) account {
	s.Helper()
	ctx := limited(s)
	a := s.ledger.account(ctx, s)
	for a.ahead != "" && ctx.Err() == nil {
		again := s.ledger.account(ctx, s)
		again.committed = a.committed
		a = again
	}
	s.Logf("%s: %s", when, a)
	if a.ahead != "" {
		s.Fatalf("%s is committed, and neither handled nor a letter nor on a retry topic", a.ahead)
	}
	for i, c := range s.team {
		if c.over() {
			s.team[i] = s.consume(s, s.ledger, s.session)
		}
	}
	return a
}

// poisoned checks the letter of the record that killed its consumers.
func (s *show) poisoned() {
	for _, r := range s.Records(s, s.letters) {
		if strings.HasPrefix(string(r.Value), poison) {
			s.Logf("the poison: %s after %s crashes", header(&r, broker.HeaderReason), header(&r, broker.HeaderCrashes))
			if header(&r, broker.HeaderReason) != "poison" || header(&r, broker.HeaderCrashes) != strconv.Itoa(maxCrashes) {
				s.Errorf("the letter of the poison: %q", r.Headers)
			}
			return
		}
	}
	s.Error("the poison has no letter")
}

// redrive sends all letters but the poison back, one in ten of them without repair.
func (s *show) redrive() {
	s.Helper()
	repair := func(_ context.Context, r *broker.Returning) error {
		if n, ok := strings.CutPrefix(string(r.Value), malformed+" "); ok && !strings.HasSuffix(n, "050") {
			r.Value = fmt.Append(nil, fine, " ", n)
		}
		return nil
	}
	bad, sent := s.records/1_000, int64(s.records/100)
	for generation := 1; generation <= 4; generation++ {
		before := s.ledger.account(s.ctx, s)
		got, err := s.move(s, s.source+".redrive", func(m *redrive.Mover) {
			m.Choose = func(r *broker.Record) bool { return !strings.HasPrefix(string(r.Value), poison) }
			m.Destination.Transform, m.Destination.MaxRedrives, m.Destination.Quarantine = repair, 3, "{source}.quarantine"
		})
		if err != nil {
			s.Fatal(err)
		}
		s.Logf("redrive %d: %d sent back, %d put into quarantine", generation, got.Redriven, got.Quarantined)
		if generation == 4 {
			if got.Redriven != 0 || got.Quarantined < int64(bad) {
				s.Errorf("redrive %d: %+v", generation, got)
			}
			break
		}
		s.until(s.idle)
		after := s.ledger.account(s.ctx, s)
		s.Logf("then: %d more handled, %d more letters", after.handled-before.handled, after.letters-before.letters)
		if got.Redriven < sent || int64(after.records-before.records) != got.Redriven || after.letters-before.letters < bad ||
			after.handled+after.letters != after.records {
			s.Errorf("redrive %d of %d: %+v", generation, sent, got)
		}
		sent = int64(bad)
		s.counted(s.letters, generation, bad)
	}
	s.counted(s.source+".quarantine", 3, bad)
}

// counted checks how many distinct records of a topic have been redriven that often, and that each
// has one count.
func (s *show) counted(topic string, generation, want int) {
	s.Helper()
	seen := map[string]bool{}
	for _, r := range s.Records(s, topic) {
		counts := headersOf(&r, broker.HeaderRedriveCount)
		if len(counts) > 1 {
			s.Fatalf("%s: %q", r.Value, r.Headers)
		}
		if len(counts) == 1 && counts[0] == strconv.Itoa(generation) {
			seen[string(r.Value)] = true
		}
	}
	s.Logf("%s: %d with x-redrive-count %d", strings.TrimPrefix(topic, s.source), len(seen), generation)
	if len(seen) != want {
		s.Errorf("%s: %d records with count %d, want %d", topic, len(seen), generation, want)
	}
}

// stopped checks a consumer that stands still for longer than its session. What it finishes
// afterwards is not committed, because another consumer has its partitions by then.
func (s *show) stopped() {
	s.Helper()
	b := &fixture{seeds: s.seeds, cluster: s.cluster, client: s.client, source: s.source + ".one"}
	b.letters = b.source + ".dlq"
	b.create(s, 1, nil, b.source, b.letters)
	l := newLedger(b)
	first, second := b.consume(s, l, s.session), b.consume(s, l, s.session)
	b.waitForTwoMembers(s.ctx, s)
	for i := range 10 { // the first one is held, and with it the commit
		word := fine
		if i == 0 {
			word = held
		}
		b.Produce(s, broker.Publication{Channel: b.source, Key: fmt.Append(nil, i), Value: fmt.Append(nil, word, " ", i)})
	}
	select {
	case <-first.holding:
	case <-second.holding:
		first, second = second, first
	case <-s.ctx.Done():
		s.Fatal("no consumer got the record")
	}
	l.until(s, 9)
	first.Signal(syscall.SIGSTOP)
	select {
	case <-second.holding:
	case <-s.ctx.Done():
		s.Fatal("no consumer took over")
	}
	first.Signal(syscall.SIGCONT)
	first.GoOn()
	l.until(s, 10)
	b.waitForTwoMembers(s.ctx, s) // the consumer was told, and is a new member
	if at, _ := b.groupState(s, 0); at > 0 {
		s.Errorf("%d are committed by a consumer whose session was over", at)
	}
	s.Logf("stopped for longer than its session of %s, then finished 10 of 10 records: 0 committed", s.session)
	second.GoOn()
	for at := int64(0); at < 10; at, _ = b.groupState(s, 0) {
		if sleep(s.ctx, 10*time.Millisecond); s.ctx.Err() != nil {
			s.Fatal("who took over did not finish")
		}
	}
	s.Logf("who took over finished them: 10 committed")
	first.kill()
	second.kill()
}

// waitForTwoMembers waits until the group has two members.
func (b *fixture) waitForTwoMembers(ctx context.Context, t testing.TB) {
	t.Helper()
	for {
		groups, err := kadm.NewClient(b.client).DescribeGroups(ctx, b.source)
		if err == nil && len(groups[b.source].Members) == 2 {
			return
		}
		if sleep(ctx, 10*time.Millisecond); ctx.Err() != nil {
			t.Fatalf("the group has not two members: %v, %v", groups, err)
		}
	}
}
