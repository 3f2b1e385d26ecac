package brokertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// testWorker is a running worker on a driver.
type testWorker struct {
	*worker.Worker
	stop context.CancelFunc
	done chan error

	mu       sync.Mutex
	changed  *sync.Cond
	settled  map[nixie.Verb]int
	refused  int    // settlements that failed
	refuser  string // the queue that the first of them names
	troubles []error
}

// workerPlan configures a testWorker; a zero field takes a usual value.
type workerPlan struct {
	config   broker.Config
	policy   policy.Config
	parallel int
	lease    time.Duration
	handle   func(ctx context.Context, d *nixie.Delivery) error
	observer *nixie.Observer
	then     func(d *nixie.Delivery) nixie.Message // follows each death
}

// following is a policy that adds a message to each burial.
type following struct {
	*policy.Policy
	then func(d *nixie.Delivery) nixie.Message
}

func (f following) Decide(d *nixie.Delivery, failed *nixie.Failure, now time.Time) nixie.Settlement {
	st := f.Policy.Decide(d, failed, now)
	if st.Burial != nil {
		st.Then = append(st.Then, f.then(d))
	}
	return st
}

// begin starts a worker.
func begin(t testing.TB, d broker.Driver, p workerPlan) *testWorker {
	t.Helper()
	p.config.Driver = d
	if p.config.Letters == "" && p.config.Office == nil {
		p.config.Letters = broker.DefaultLetters
	}
	source, err := broker.New(p.config)
	if err != nil {
		t.Fatal(err)
	}
	if p.policy.Backoff.Base == 0 {
		p.policy.Backoff = policy.Backoff{Base: -1}
	}
	pol, err := policy.New(p.policy)
	if err != nil {
		t.Fatal(err)
	}
	s := &testWorker{done: make(chan error, 1), settled: map[nixie.Verb]int{}}
	s.changed = sync.NewCond(&s.mu)
	var decider policy.Decider
	if p.then != nil {
		decider = following{pol, p.then}
	}
	s.Worker, err = worker.New(worker.Config{
		Source: source, Policy: pol, Decider: decider, Handler: nixie.HandlerFunc(p.handle), Concurrency: max(p.parallel, 4),
		Name: "tester", Drain: -1, Lease: p.lease,
		Observer: nixie.Tee(p.observer, &nixie.Observer{Settled: s.count, Trouble: s.trouble}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.Run(ctx) }()
	return s
}

func (s *testWorker) count(_ string, sts []nixie.Settlement, errs []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range sts {
		if errs[i] == nil {
			s.settled[sts[i].Verb]++
		} else {
			var told *nixie.Error
			if s.refused == 0 && errors.As(errs[i], &told) {
				s.refuser = told.Queue
			}
			s.refused++
		}
	}
	s.changed.Broadcast()
}

func (s *testWorker) trouble(_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, err)
	s.changed.Broadcast()
}

// until waits until the settlements satisfy a condition.
func (s *testWorker) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.AfterFunc(timeout, func() {
		s.mu.Lock()
		s.troubles = append(s.troubles, errLate)
		s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !holds() {
		if slices.Contains(s.troubles, errLate) {
			t.Fatalf("%s: not after %s; settled %v, trouble %v", what, timeout, s.settled, s.troubles[:min(len(s.troubles), 5)])
		}
		s.changed.Wait()
	}
}

var errLate = errors.New("the wait took too long")

// end stops the worker and waits for it.
func (s *testWorker) end(t testing.TB) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// abandon stops the worker and ignores its errors.
func (s *testWorker) abandon() {
	s.stop()
	s.Abort()
	<-s.done //nolint:errcheck // what it says does not matter
}

var errBoom = errors.New("boom")

// Under a mixed load each record succeeds, at once or later, or becomes a letter.
func everyRecordEnds(t *testing.T, fixture Fixture) {
	const n = 200
	for i := range n {
		kind := "fine"
		switch {
		case i%10 == 3:
			kind = "flaky"
		case i%10 == 7:
			kind = "bad"
		case i%20 == 5:
			kind = "hopeless"
		}
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: fmt.Append(nil, i%7), Value: fmt.Append(nil, kind, " ", i)})
	}
	d := join(t, fixture)
	s := begin(t, d, workerPlan{policy: policy.Config{MaxAttempts: 3}, handle: func(_ context.Context, d *nixie.Delivery) error {
		switch kind, _, _ := strings.Cut(string(d.Body), " "); {
		case kind == "bad":
			return nixie.Permanent(errBoom)
		case kind == "hopeless", kind == "flaky" && d.Attempts == 1:
			return nixie.Transient(errBoom)
		}
		return nil
	}})
	s.until(t, "all ended", func() bool { return s.settled[nixie.Complete]+s.settled[nixie.Bury] == n })
	s.end(t)
	if s.settled[nixie.Bury] != n/10+n/20 || s.settled[nixie.Retry] != n/10+2*n/20 {
		t.Errorf("settled %v", s.settled)
	}
	reasons := map[string]int{}
	for _, r := range fixture.Records(t, letters(fixture)) {
		reasons[header(&r, broker.HeaderFailureReason)+" after "+header(&r, broker.HeaderAttempts)]++
	}
	want := map[string]int{"permanent_error after 1": n / 10, "transient_max_retries after 3": n / 20}
	if !maps.Equal(reasons, want) {
		t.Errorf("letters %v, want %v", reasons, want)
	}
	if err := d.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Value: []byte("last")})
	if got := values(receive(t, join(t, fixture), 1)); got[0] != "last" {
		t.Errorf("%q came again", got)
	}
}

func header(r *broker.Record, name string) string {
	found := ""
	for _, h := range r.Headers {
		if h.Name == name {
			found = string(h.Value)
		}
	}
	return found
}

// Each letter has the key, value and headers of its record, once, in the same order.
func lettersAreWhole(t *testing.T, fixture Fixture) {
	sent := oddRecords()
	for i := range sent {
		sent[i].Channel = fixture.Source()
		sent[i].Headers = append(sent[i].Headers, broker.RecordHeader{Name: "X-Redrive-Count", Value: []byte("1")},
			broker.RecordHeader{Name: "x-redrive-count", Value: []byte("2")})
	}
	fixture.Produce(t, sent...)
	s := begin(t, join(t, fixture), workerPlan{handle: func(context.Context, *nixie.Delivery) error {
		return nixie.WithEvidence(nixie.Permanent(errBoom), nixie.Failure{Stack: strings.Repeat("at line\n", 5000)})
	}})
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == len(sent) })
	s.end(t)
	letters := fixture.Records(t, letters(fixture))
	if len(letters) != len(sent) {
		t.Fatalf("%d letters of %d", len(letters), len(sent))
	}
	for _, l := range letters {
		if n := slices.IndexFunc(sent, func(p broker.Publication) bool { return sameLetter(&p, &l) }); n < 0 {
			t.Errorf("letter with key %q is not what was sent: %+v", l.Key, l.Headers)
		}
		if key := header(&l, broker.HeaderKey); key != string(l.Key) ||
			(l.Key == nil) == slices.ContainsFunc(l.Headers, func(h broker.RecordHeader) bool { return h.Name == broker.HeaderKey }) {
			t.Errorf("letter with key %q says %q", l.Key, key)
		}
		if header(&l, broker.HeaderTopic) != fixture.Source() || header(&l, broker.HeaderRedriveCount) != "2" ||
			header(&l, broker.HeaderLetterID) == "" {
			t.Errorf("headers %v", l.Headers)
		}
		if stack := header(&l, broker.HeaderStack); len(stack) > 8<<10 || !strings.HasSuffix(stack, "cut") {
			t.Errorf("stack has %d bytes and ends %q", len(stack), stack[max(len(stack)-10, 0):])
		}
	}
}

// sameLetter compares a letter with its record, without our headers.
func sameLetter(p *broker.Publication, l *broker.Record) bool {
	mine := func(h broker.RecordHeader) bool { return strings.HasPrefix(strings.ToLower(h.Name), "x-") }
	a, b := *p, *l
	a.Headers = slices.DeleteFunc(slices.Clone(p.Headers), mine)
	b.Headers = slices.DeleteFunc(slices.Clone(l.Headers), mine)
	return same(&a, &b)
}

// failingDriver returns errors from Ack and Publish while they are set.
type failingDriver struct {
	broker.Driver
	mu           sync.Mutex
	ack, publish error
}

func (c *failingDriver) Publish(ctx context.Context, list []broker.Publication) func() []error {
	if err := c.failing(&c.publish); err != nil {
		return func() []error { return each(len(list), err) }
	}
	return c.Driver.Publish(ctx, list)
}

func (c *failingDriver) Ack(ctx context.Context, records []*broker.Record) []error {
	if err := c.failing(&c.ack); err != nil {
		return each(len(records), err)
	}
	return c.Driver.Ack(ctx, records)
}

func (c *failingDriver) failing(err *error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *err
}

func (c *failingDriver) set(ack, pub error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ack, c.publish = ack, pub
}

func each(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// crash ends a consumer and its worker.
func (c *failingDriver) crash(t testing.TB, fixture Fixture, s *testWorker) {
	lost := nixie.Errorf(nixie.CodeLeaseLost, "it crashed")
	c.set(lost, lost)
	fixture.Crash(t, c.Driver)
	s.abandon()
}

// A record is not done while its letter cannot be stored.
func noAckBeforeTheLetter(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 5)...)
	refuses := workerPlan{handle: func(context.Context, *nixie.Delivery) error { return nixie.Permanent(errBoom) }}
	first := &failingDriver{Driver: fixture.Join(t), publish: nixie.Errorf(nixie.CodeUnavailable, "no letters now")}
	s := begin(t, first, refuses)
	s.until(t, "all were refused", func() bool { return s.refused >= 5 })
	first.crash(t, fixture, s)
	second := &failingDriver{Driver: join(t, fixture), publish: nixie.Errorf(nixie.CodeOutcomeUnknown, "no word of the letter")}
	s = begin(t, second, refuses)
	s.until(t, "all came again", func() bool { return s.refused >= 5 })
	second.set(nil, nil)
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == 5 })
	s.end(t)
	if n := len(fixture.Records(t, letters(fixture))); n != 5 {
		t.Errorf("%d letters", n)
	}
}

// A record is not done while a message that follows it cannot be published. When its
// acknowledgement is lost, the message is published again with the same key.
func noAckBeforeWhatFollows(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 5)...)
	follows := workerPlan{handle: func(_ context.Context, d *nixie.Delivery) error {
		return d.Then(nixie.Message{Queue: letters(fixture), Type: "done", Key: "of " + d.Key, Body: d.Body,
			Headers: []nixie.Header{{Name: "h", Value: "1"}}})
	}}
	down := nixie.Errorf(nixie.CodeUnavailable, "not now")
	for _, fails := range []struct{ ack, publish error }{{nil, down}, {down, nil}} {
		d := &failingDriver{Driver: fixture.Join(t), ack: fails.ack, publish: fails.publish}
		s := begin(t, d, follows)
		s.until(t, "none is acknowledged", func() bool { return s.refused >= 5 })
		if n := len(fixture.Records(t, letters(fixture))); fails.ack == nil && n != 0 {
			t.Errorf("%d messages follow, although they cannot be published", n)
		}
		d.crash(t, fixture, s)
		if fails.publish != nil && s.refuser != letters(fixture) {
			t.Errorf("a settlement names %q as the channel that refused what follows", s.refuser)
		}
	}
	s := begin(t, join(t, fixture), follows)
	s.until(t, "all have succeeded", func() bool { return s.settled[nixie.Complete] == 5 })
	s.end(t)
	keys := map[string]string{}
	for _, r := range fixture.Records(t, letters(fixture)) {
		found := map[string]string{}
		for _, h := range r.Headers {
			found[h.Name] = string(h.Value)
		}
		if found["h"] != "1" || found[broker.HeaderType] != "done" {
			t.Errorf("headers %v", found)
		}
		keys[found[broker.HeaderDedupeKey]] = string(r.Key) + ": " + string(r.Value)
	}
	got := slices.Sorted(maps.Values(keys))
	if want := "[of key 0: value 0 of key 1: value 1 of key 2: value 2 of key 3: value 3 of key 4: value 4]"; fmt.Sprint(got) != want {
		t.Errorf("what follows: %q", keys)
	}
}

// closedOffice takes no letters until it is opened.
type closedOffice struct {
	*memory.Store
	open atomic.Bool
}

func (o *closedOffice) Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error) {
	if !o.open.Load() {
		return make([]nixie.Receipt, len(letters)), each(len(letters), nixie.Errorf(nixie.CodeUnavailable, "not now"))
	}
	return o.Store.Adopt(ctx, letters, actor, reason)
}

// What is to follow a death is not published before its letter is stored.
func nothingBeforeTheLetter(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 5)...)
	office := &closedOffice{Store: memory.New(memory.Options{})}
	s := begin(t, join(t, fixture), workerPlan{
		config: broker.Config{Office: office, Queue: "orders"},
		handle: func(context.Context, *nixie.Delivery) error { return nixie.Permanent(errBoom) },
		then: func(*nixie.Delivery) nixie.Message {
			return nixie.Message{Queue: letters(fixture), Body: []byte("died")}
		},
	})
	s.until(t, "all were refused", func() bool { return s.refused >= 5 })
	if n := len(fixture.Records(t, letters(fixture))); n != 0 {
		t.Errorf("%d messages follow deaths without a letter", n)
	}
	office.open.Store(true)
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == 5 })
	s.end(t)
	if n := len(fixture.Records(t, letters(fixture))); n != 5 {
		t.Errorf("%d messages follow 5 deaths", n)
	}
}

// An office adopts a letter once, even if its record dies several times.
func officeKnows(t *testing.T, fixture Fixture) {
	sent := oddRecords()
	for i := range sent {
		sent[i].Channel = fixture.Source()
	}
	fixture.Produce(t, sent...)
	st := memory.New(memory.Options{})
	refuses := workerPlan{config: broker.Config{Office: st, Queue: "orders"},
		handle: func(context.Context, *nixie.Delivery) error { return nixie.Permanent(errBoom) }}
	first := &failingDriver{Driver: fixture.Join(t), ack: nixie.Errorf(nixie.CodeUnavailable, "no answer")}
	s := begin(t, first, refuses)
	s.until(t, "none is acknowledged", func() bool { return s.refused >= len(sent) })
	first.crash(t, fixture, s)
	s = begin(t, join(t, fixture), refuses)
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == len(sent) })
	s.end(t)
	letters, _, err := st.Letters(t.Context(), nixie.Filter{Queues: []string{"orders"}}, store.Page{Whole: true})
	if err != nil || len(letters) != len(sent) {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
	for _, l := range letters {
		o := l.Message.Origin
		own := slices.DeleteFunc(slices.Clone(l.History),
			func(f nixie.Failure) bool { return f.Reason == nixie.ReasonLeaseExpired }) // it may have been in hand at the crash
		if o == nil || o.Channel != fixture.Source() || len(own) != 1 || l.Cause != nixie.CausePermanent {
			t.Errorf("%+v", l)
			continue
		}
		if !slices.ContainsFunc(sent, func(p broker.Publication) bool {
			return sameBytes(p.Key, o.Key) && string(p.Value) == string(l.Message.Body)
		}) {
			t.Errorf("key %q, body %q", o.Key, l.Message.Body)
		}
	}
	if report, err := st.Check(t.Context()); err != nil || len(report.Violations) > 0 {
		t.Error(report, err)
	}
}

// A record that always kills its holder becomes a letter, and the other records of its partition
// succeed.
func crashLoopsEnd(t *testing.T, fixture Fixture) {
	const n, maxAttempts, mostKills = 30, 3, 12
	for i := range n {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i)})
	}
	kills, before := 0, 0
	for over := false; !over; {
		d := fixture.Join(t)
		var once sync.Once
		killed := make(chan struct{})
		s := begin(t, d, workerPlan{policy: policy.Config{MaxAttempts: maxAttempts},
			handle: func(ctx context.Context, m *nixie.Delivery) error {
				if string(m.Body) != "7" {
					return nil
				}
				once.Do(func() { fixture.Crash(t, d); close(killed) })
				<-ctx.Done()
				return ctx.Err()
			}})
		dead := make(chan struct{})
		go func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for s.settled[nixie.Bury] == 0 && !slices.Contains(s.troubles, errLate) {
				s.changed.Wait()
			}
			close(dead)
		}()
		select {
		case <-killed:
			kills++
			s.trouble("", errLate)
			s.abandon()
			s.mu.Lock()
			before += s.settled[nixie.Complete]
			s.mu.Unlock()
		case <-dead:
			s.until(t, "the others succeeded", func() bool { // a broker without an order may hand them out before the killer
				got := s.settled[nixie.Complete]
				return got > n-9 || !d.Features().Ordered && before+got >= n-1
			})
			s.end(t)
			over = true
			all := d.Close(limited(t))
			if all != nil {
				t.Error(all)
			}
		case <-time.After(timeout):
			t.Fatalf("no end after %d kills", kills)
		}
		<-dead
		if kills > mostKills {
			t.Fatalf("it killed %d holders", kills)
		}
	}
	letters := fixture.Records(t, letters(fixture))
	if len(letters) != 1 || string(letters[0].Value) != "7" {
		t.Fatalf("letters %+v", letters)
	}
	if kills < maxAttempts {
		t.Errorf("judged after %d kills of %d", kills, maxAttempts)
	}
	l, m := &letters[0], broker.Adopted("x", &letters[0], "").Message
	if got := fmt.Sprint(m.Crashes, m.Attempts); m.Crashes < maxAttempts ||
		got != header(l, broker.HeaderCrashes)+" "+header(l, broker.HeaderAttempts) {
		t.Errorf("adopted with crashes and attempts %s: %q", got, l.Headers)
	}
}

// Records of one key run one after the other in their order, though some are retried.
func keysKeepOrder(t *testing.T, fixture Fixture) {
	const n, keys = 120, 4
	for i := range n {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: fmt.Append(nil, i%keys), Value: fmt.Appendf(nil, "%03d", i)})
	}
	d := join(t, fixture)
	if !d.Features().Ordered {
		t.Skip("this broker keeps no order")
	}
	var mu sync.Mutex
	done := map[string][]string{}
	s := begin(t, d, workerPlan{parallel: 8, handle: func(_ context.Context, d *nixie.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if d.Attempts == 1 && string(d.Body) > "080" {
			return errBoom
		}
		done[d.Key] = append(done[d.Key], string(d.Body))
		return nil
	}})
	s.until(t, "all are done", func() bool { return s.settled[nixie.Complete] == n })
	s.end(t)
	for key, list := range done {
		if len(list) != n/keys || !slices.IsSorted(list) {
			t.Errorf("key %s: %v", key, list)
		}
	}
}

// A waiting retry holds up only the records of its key.
func othersPass(t *testing.T, fixture Fixture) {
	const n = 50
	fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Value: []byte("bad")})
	fixture.Produce(t, numbered(fixture, n)...)
	d := join(t, fixture)
	s := begin(t, d, workerPlan{policy: policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: time.Minute}},
		handle: func(_ context.Context, d *nixie.Delivery) error {
			if string(d.Body) == "bad" {
				return errBoom
			}
			return nil
		}})
	s.until(t, "the others succeeded", func() bool { return s.settled[nixie.Complete] == n && s.settled[nixie.Retry] == 1 })
	s.end(t)
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
