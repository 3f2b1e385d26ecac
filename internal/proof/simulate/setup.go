package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Setup is what does not change in a run.
type Setup struct {
	Seed    uint64
	Queues  []QueueSetup
	Policy  policy.Config
	Breaker policy.BreakerRules
	Workers []WorkerSetup
	OwnIDs  bool // messages come with an ID
	Cap     int  // of the redrives of a letter by operators
}

// QueueSetup is a queue.
type QueueSetup struct {
	Name     string
	Settings nixie.QueueSettings
}

// WorkerSetup is a process that works on all queues.
type WorkerSetup struct {
	Name        string
	Concurrency int
	Lease       time.Duration
	Skew        time.Duration // of its clock
}

// officeName is the process of operators and producers.
const officeName = "office"

// draw makes a setup of a seed.
func draw(seed uint64, dice *rand.Rand) Setup {
	s := Setup{Seed: seed, OwnIDs: dice.IntN(2) == 0, Cap: 1 + dice.IntN(4)}
	orders := []nixie.QueueSettings{
		{}, {PriorityAge: -1}, {Order: nixie.OrderStrict}, {Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}, {Order: nixie.OrderRelaxed, PriorityAge: 5 * time.Second},
	}
	for _, queue := range []string{"a", "b"}[:1+dice.IntN(2)] {
		q := pick(dice, orders)
		q.DedupeScope = pick(dice, []nixie.DedupeScope{"", nixie.DedupeActive, nixie.DedupeUnresolved, nixie.DedupeEver})
		q.Retention, q.LetterRetention = pick(dice, []time.Duration{0, time.Minute, nixie.Forever}), pick(dice, []time.Duration{0, 2 * time.Minute})
		q.AuditRetention = pick(dice, []time.Duration{0, 2 * time.Minute})
		s.Queues = append(s.Queues, QueueSetup{queue, q})
	}
	s.Policy = policy.Config{
		MaxAttempts: 1 + dice.IntN(5),
		MaxCrashes:  dice.IntN(2) * (1 + dice.IntN(3)),
		MaxRedrives: 1 + dice.IntN(2),
		OnExhausted: pick(dice, []nixie.Verb{nixie.Bury, nixie.Bury, nixie.Hold, nixie.Discard, nixie.Halt}),
		Backoff: policy.Backoff{
			Formula: pick(dice, []policy.Formula{policy.Exponential, policy.Linear, policy.Fixed, policy.Fibonacci}),
			Base:    pick(dice, []time.Duration{-1, 100 * time.Millisecond, time.Second, 10 * time.Second}), Cap: time.Minute,
			Jitter: pick(dice, policy.Jitters()[:3]),
		},
	}
	s.Policy.MaxDeliveries = s.Policy.MaxAttempts + dice.IntN(6)
	if !s.OwnIDs {
		s.Policy.Backoff.Jitter = policy.JitterNone // the dice of the others are the ID
	}
	if dice.IntN(3) == 0 {
		s.Breaker = policy.BreakerRules{Failures: 1 + dice.IntN(3), Successes: 1 + dice.IntN(2), OpenFor: 5 * time.Second, HalfOpenMax: 1 + dice.IntN(2)}
	}
	for i := range 2 + dice.IntN(3) {
		s.Workers = append(s.Workers, WorkerSetup{
			Name: fmt.Sprintf("w%d", i+1), Concurrency: 1 + dice.IntN(4),
			Lease: pick(dice, []time.Duration{nixie.MinLease, 2 * time.Second, 10 * time.Second, 30 * time.Second}),
			Skew:  pick(dice, []time.Duration{0, 0, time.Hour, -time.Hour}),
		})
	}
	return s
}

func pick[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }

// names are those of the queues.
func (s *Setup) names() []string {
	var names []string
	for _, q := range s.Queues {
		names = append(names, q.Name)
	}
	return names
}

// ordered are the queues that have streams.
func (s *Setup) ordered() []string {
	return slices.DeleteFunc(s.names(), func(queue string) bool {
		return !slices.ContainsFunc(s.Queues, func(q QueueSetup) bool { return q.Name == queue && q.Settings.Ordered() })
	})
}

// String says it in lines.
func (s *Setup) String() string {
	b := &strings.Builder{}
	for _, q := range s.Queues {
		fmt.Fprintf(b, "queue %s: order %q, dead head %q, dedupe %q, retention %s, of letters %s\n", q.Name, q.Settings.Order, q.Settings.DeadHead, q.Settings.DedupeScope,
			q.Settings.Retention, q.Settings.LetterRetention)
	}
	p := &s.Policy
	fmt.Fprintf(b, "policy: %d attempts, %d deliveries, %d crashes, %d redrives, then %s; %s from %s, jitter %s; breaker %s; cap of redrives %d\n",
		p.MaxAttempts, p.MaxDeliveries, p.MaxCrashes, p.MaxRedrives, p.OnExhausted, p.Backoff.Formula, p.Backoff.Base, p.Backoff.Jitter, s.Breaker, s.Cap)
	for _, w := range s.Workers {
		fmt.Fprintf(b, "%s: %d handlers, lease %s, clock %s\n", w.Name, w.Concurrency, w.Lease, w.Skew)
	}
	return b.String()
}
