package storetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// exchangeClauses settle and claim in one call: of the store if it has Exchange of
// [store.Features], else of the source.
func exchangeClauses() []clause {
	return []clause{
		{"ExchangeSettlesAndClaims", exchangeBoth},
		{"ExchangeAnswersEachSettlement", exchangeAnswers},
		{"ExchangeHandsOutWhatItFrees", exchangeFrees},
		{"ExchangeHandsOutTheNextOfAStream", exchangeStream},
		{"ExchangeOfAHaltClaimsNothing", exchangeHalts},
		{"ExchangeEndsLeasesBeforeItClaims", exchangeSweeps},
		{"ExchangeSettlesWithoutAClaim", exchangeWithoutClaim},
		{"ExchangeBeyondALimitIsRefused", exchangeRefused},
		{"ExchangeWaitsForWork", exchangeWaits},
		{"ExchangeFreesClaimedKeys", exchangeKeys},
	}
}

// exchange settles, and claims up to n messages of the queue work for 30 s.
func (b *fixture) exchange(n int, settlements ...nixie.Settlement) ([]*nixie.Delivery, []error) {
	b.Helper()
	errs, ds, err := store.NewSource(b.st, work).Exchange(b.ctx, settlements, nixie.Want{Max: n, Lease: 30 * time.Second})
	b.ok(err)
	same(b, "number of answers", len(errs), len(settlements))
	return ds, errs
}

// complete returns the settlement of a success.
func complete(d *nixie.Delivery) nixie.Settlement {
	return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
}

func exchangeBoth(b *fixture) {
	for _, key := range []string{"done", "fails", "back", "dies", "next", "last"} {
		b.put(key)
	}
	ds := b.claim(4)
	b.keys(ds, "done", "fails", "back", "dies")
	got, errs := b.exchange(2, complete(ds[0]),
		nixie.Settlement{Delivery: ds[1], Verb: nixie.Retry, Failure: b.failure(ds[1], "no"), Delay: time.Hour},
		nixie.Settlement{Delivery: ds[2], Verb: nixie.Release}, b.dying(ds[3], nixie.StatusOpen))
	for _, err := range errs {
		b.ok(err)
	}
	b.keys(got, "back", "next")
	b.state(ds[0].ID, nixie.Succeeded)
	same(b, "failures", len(b.record(ds[1].ID).History), 1)
	same(b, "attempts of the released one", got[0].Attempts, 1)
	same(b, "deliveries of the released one", got[0].Deliveries, 2)
	b.status(ds[3].ID, nixie.StatusOpen)
	got, errs = b.exchange(10, complete(got[0]), complete(got[1])) // nothing but successes
	b.ok(errs[0])
	b.ok(errs[1])
	b.keys(got, "last")
	same(b, "body", string(got[0].Body), "body of last")
	got, errs = b.exchange(10, complete(got[0]))
	b.ok(errs[0])
	b.keys(got)
}

// exchangeAnswers shows that a settlement that is refused stops neither the others nor the claim.
func exchangeAnswers(b *fixture) {
	first, second := b.took("first"), b.took("second")
	b.put("third")
	b.put("fourth")
	b.ok(b.settle(complete(first)))
	got, errs := b.exchange(1, complete(first), complete(second))
	b.code(errs[0], nixie.CodeLeaseLost)
	b.ok(errs[1])
	b.keys(got, "third")
	b.state(second.ID, nixie.Succeeded)
	got, errs = b.exchange(1, nixie.Settlement{}, complete(got[0]), nixie.Settlement{Delivery: first, Verb: nixie.Release})
	b.code(errs[0], nixie.CodeInvalid)
	b.ok(errs[1])
	b.code(errs[2], nixie.CodeLeaseLost)
	b.keys(got, "fourth")
	same(b, "lease", got[0].Lease.Number, 1)
}

func exchangeFrees(b *fixture) {
	d := b.took("a")
	st := complete(d)
	st.Then = []nixie.Message{message("follows")}
	got, errs := b.exchange(2, st)
	b.ok(errs[0])
	// A store may take in what follows too late for this claim, and then the next one brings it.
	if len(got) == 0 {
		got = b.claim(2)
	}
	b.keys(got, "follows")
	got, errs = b.exchange(1, nixie.Settlement{Delivery: got[0], Verb: nixie.Retry, Failure: b.failure(got[0], "no")})
	b.ok(errs[0])
	b.keys(got, "follows")
	same(b, "attempts", got[0].Attempts, 2)
	same(b, "last reason", got[0].LastReason, nixie.ReasonHandler)
}

func exchangeStream(b *fixture) {
	for _, order := range []nixie.Order{nixie.OrderStrict, nixie.OrderRelaxed} {
		b.configure(keeping(nixie.QueueSettings{Order: order}))
		for _, key := range []string{"1", "2", "3"} {
			b.put(key, nixie.Stream("s"))
		}
		got := b.claim(10)
		b.keys(got, "1")
		for _, next := range [][]string{{"2"}, {"3"}, nil} {
			var errs []error
			got, errs = b.exchange(10, complete(got[0]))
			b.ok(errs[0])
			b.keys(got, next...)
		}
	}
}

func exchangeHalts(b *fixture) {
	d := b.took("a")
	b.put("b")
	halt := b.dying(d, nixie.StatusOpen)
	halt.Verb, halt.Failure.Decision = nixie.Halt, nixie.Halt
	got, errs := b.exchange(10, halt)
	b.ok(errs[0])
	b.keys(got)
	same(b, "paused", b.info().Settings.Paused, true)
}

// exchangeSweeps shows that what was abandoned comes first, to be judged, as with a claim.
func exchangeSweeps(b *fixture) {
	b.put("vanishes")
	b.put("renewed")
	b.put("new")
	ds := b.claim(2)
	b.clock.Advance(20 * time.Second)
	b.ok(b.st.Extend(b.ctx, ds[1:], time.Minute)[0])
	b.clock.Advance(20 * time.Second)
	for _, st := range []nixie.Settlement{complete(ds[1]), {Delivery: ds[1], Verb: nixie.Release}} {
		got, errs := b.exchange(1, st)
		if st.Verb == nixie.Release { // the second one
			b.code(errs[0], nixie.CodeLeaseLost)
			b.keys(got, "new")
			continue
		}
		b.ok(errs[0])
		b.keys(got, "vanishes")
		same(b, "abandoned", got[0].Abandoned, true)
	}
}

// exchangeWithoutClaim shows that a claim that is refused undoes no settlement.
func exchangeWithoutClaim(b *fixture) {
	b.put("a")
	b.put("b")
	ds := b.claim(2)
	too := nixie.Want{Max: 1, Lease: 2 * nixie.MaxLease}
	for _, st := range []nixie.Settlement{complete(ds[0]), {Delivery: ds[1], Verb: nixie.Release}} {
		errs, got, err := store.NewSource(b.st, work).Exchange(b.ctx, []nixie.Settlement{st}, too)
		b.code(err, nixie.CodeInvalid)
		b.keys(got)
		b.ok(errs[0])
	}
	b.state(ds[0].ID, nixie.Succeeded)
	b.state(ds[1].ID, nixie.Queued)
}

func exchangeRefused(b *fixture) {
	d := b.took("a")
	b.put("b")
	many := slices.Repeat([]nixie.Settlement{complete(d)}, nixie.MaxBatch+1)
	errs, _, _ := store.NewSource(b.st, work).Exchange(b.ctx, many, nixie.Want{Max: 1})
	same(b, "number of answers", len(errs), len(many))
	for _, err := range errs {
		b.code(err, nixie.CodeLimit)
	}
	b.ok(b.settle(complete(d)))
}

func exchangeWaits(b *fixture) {
	d := b.took("a")
	got := make(chan received, 1)
	settled := make(chan error, 1)
	go func() {
		errs, ds, err := store.NewSource(b.st, work).Exchange(b.ctx, []nixie.Settlement{complete(d)},
			nixie.Want{Max: 1, Wait: patience, Lease: time.Minute})
		settled <- errs[0]
		got <- received{ds, err}
	}()
	b.put("late", nixie.Delay(time.Second))
	b.clock.Advance(time.Second)
	r := <-got
	b.ok(r.err)
	b.ok(<-settled)
	b.keys(r.ds, "late")
}

// exchangeKeys shows that a claim frees keys that are held until then, as it does by itself.
func exchangeKeys(b *fixture) {
	b.configure(keeping(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued}))
	d := b.took("a", nixie.DedupeKey("k"))
	id := b.put("b", nixie.DedupeKey("k"))
	got, errs := b.exchange(1, complete(d))
	b.ok(errs[0])
	b.keys(got, "b")
	same(b, "the second one", got[0].ID, id)
	b.put("c", nixie.DedupeKey("k"))
}

// exchange settles and claims in one call, where the store can. The reference makes two.
func (m *machine) exchange(r *rapid.T) {
	p, queue := m.process(r), m.queue(r)
	if p.sut.Features().Exchange == nil {
		r.Skip("the store has no Exchange")
	}
	plain := rapid.Bool().Draw(r, "all succeeded")
	var sut, ref []nixie.Settlement
	for _, l := range m.some(r) {
		x, y := nixie.Settlement{Verb: nixie.Complete, Delivery: l.sut}, nixie.Settlement{Verb: nixie.Complete, Delivery: l.ref}
		if !plain {
			x, y = m.settlement(r, l)
		}
		sut, ref = append(sut, x), append(ref, y)
	}
	dropKeys(sut)
	want, others := m.want(r, p), m.others(queue)
	errs, got, err := p.sut.Features().Exchange(m.ctx, sut, queue, want)
	m.sameCodes("exchange", errs, p.ref.Settle(m.ctx, ref))
	expected, wrong := p.ref.Claim(m.ctx, queue, want)
	m.sameCode("claim of an exchange", err, wrong)
	m.followed()
	m.took(p, fmt.Sprintf("exchange for %+v from %s", want, queue), got, expected)
	m.claimOthers(p, others)
}
