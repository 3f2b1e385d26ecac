package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// Words that begin the body of a record, and tell the handler what to do.
const (
	fine      = "fine"
	malformed = "malformed" // it fails for good
	flaky     = "flaky"     // it fails once
	poison    = "poison"    // it kills its process
)

// Words that a consuming process says.
const (
	handled = "handled"
	dying   = "dying"
)

// consumeAsChild consumes a mailbox until the process is killed.
func consumeAsChild(args []string) error {
	ctx := context.Background()
	parallel, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c := Config{Address: Address{Servers: args[:1], Mailbox: args[1]}}
	d, err := Open(ctx, c)
	for ; err != nil; d, err = Open(ctx, c) { // the server is being killed
		sleep(ctx, 10*time.Millisecond)
	}
	s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters, MaxInHand: 200})
	if err != nil {
		return err
	}
	p, err := policy.New(policy.Config{MaxAttempts: 9, Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond}})
	if err != nil {
		return err
	}
	voice := &child.Voice{}
	w, err := worker.New(worker.Config{Source: s, Policy: p, Concurrency: parallel, Lease: childLease,
		Handler: nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error { return handleAsChild(ctx, voice, d) })})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// childLease is so long that a test waits for its end only where a killed server took the answer to
// a claim with it. All others are ended by [fixture.endLeases].
const childLease = time.Minute

func handleAsChild(ctx context.Context, voice *child.Voice, d *nixie.Delivery) error {
	word, number, _ := strings.Cut(string(d.Body), " ")
	switch {
	case word == malformed:
		return nixie.Permanent(errors.New("it is malformed"))
	case word == flaky && d.Attempts == 1:
		return nixie.Transient(errors.New("not now"))
	case word == poison:
		voice.Say(dying, number)
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
			return nixie.Permanent(errors.New("it could not die"))
		}
		select {} // the process is dead, or about to be
	}
	sleep(ctx, time.Millisecond)
	voice.Say(handled, number)
	return nil
}

// consumer is such a process, seen by its test.
type consumer struct {
	*child.Process
	gone chan struct{} // closed when it has ended
}

// ledger counts what consumers handled.
type ledger struct {
	mu      sync.Mutex
	changed *sync.Cond
	times   map[string]int // by number of the record
}

func newLedger() *ledger {
	l := &ledger{times: map[string]int{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// note counts what a consumer says until it ends.
func (l *ledger) note(c *consumer) {
	defer close(c.gone)
	for words := range c.Lines {
		if words[0] == handled {
			l.mu.Lock()
			l.times[words[1]]++
			l.changed.Broadcast()
			l.mu.Unlock()
		}
	}
}

// until waits until n distinct records were handled.
func (l *ledger) until(t testing.TB, n int) {
	t.Helper()
	late := false
	timer := time.AfterFunc(testTimeout, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.changed.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.times) < n {
		if late {
			t.Fatalf("%d of %d records were handled", len(l.times), n)
		}
		l.changed.Wait()
	}
}

// handled counts the distinct records that were handled.
func (l *ledger) handled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times)
}

// repeats counts the runs that were not the first ones of their records.
func (l *ledger) repeats() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.times {
		n += times - 1
	}
	return n
}

// testTimeout bounds each wait of a test. It is longer than a lease that has to end by itself.
const testTimeout = 2 * childLease

// consume starts a process that consumes the mailbox.
func (f *fixture) consume(t testing.TB, l *ledger, parallel int) *consumer {
	t.Helper()
	c := &consumer{child.Start(t, f.at.Servers[0], f.at.Mailbox, fmt.Sprint(parallel)), make(chan struct{})}
	go l.note(c)
	return c
}

// kill ends a consumer, and the leases that it had. It returns how many.
func (f *fixture) kill(t testing.TB, c *consumer) int {
	t.Helper()
	c.Kill()
	<-c.gone
	f.disconnected(t, childClient)
	return f.endLeases(t, "")
}

// childClient is the name of the connections of a consuming process.
const childClient = "nixie"

// produce adds n records. Word says what each begins with.
func (f *fixture) produce(t testing.TB, n int, word func(i int) string) {
	t.Helper()
	list := make([]broker.Publication, n)
	for i := range list {
		list[i] = broker.Publication{Channel: f.at.Mailbox, Value: fmt.Append(nil, cmp.Or(word(i), fine), " ", i)}
	}
	f.Produce(t, list...)
}

// allDone waits until the mailbox is empty.
func (f *fixture) allDone(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if left, err := f.client.HLen(ctx, f.mailbox().keys[2]).Result(); err == nil && left == 0 {
			return
		}
		sleep(ctx, 5*time.Millisecond)
	}
	s, err := f.mailbox().stats(context.WithoutCancel(ctx))
	t.Fatalf("the mailbox is not empty: %+v, %v", s, err)
}

// header returns the value of a header.
func header(r *broker.Record, name string) string {
	for _, h := range r.Headers {
		if h.Name == name {
			return string(h.Value)
		}
	}
	return ""
}

// distinct returns the letters, each once.
func (f *fixture) distinct(t testing.TB) []broker.Record {
	t.Helper()
	var out []broker.Record
	seen := map[string]bool{}
	for _, r := range f.Records(t, f.letters()) {
		if id := header(&r, broker.HeaderLetterID); !seen[id] {
			seen[id] = true
			out = append(out, r)
		}
	}
	return out
}

// endLeases ends the leases whose tokens begin so. It returns how many.
func (f *fixture) endLeases(t testing.TB, holder string) (n int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys := keysOf(f.at.Mailbox)
	tokens, err := f.client.HGetAll(ctx, keys[4]).Result()
	if err != nil {
		t.Fatal(err)
	}
	for id, token := range tokens {
		if strings.HasPrefix(token, holder) {
			n++
			if err := f.client.ZAddXX(ctx, keys[1], redis.Z{Score: 1, Member: id}).Err(); err != nil {
				t.Error(err)
			}
		}
	}
	return n
}
