package storetest

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func pruneClauses() []clause {
	return []clause{
		{"OnlyWhatEndedLongAgo", pruneOld},
		{"NeverWhatWaits", pruneNothingThatWaits},
		{"LettersBySetting", pruneLetters},
		{"TheAuditKeepsItsAnchor", pruneAudit},
		{"AsADryRunSays", pruneAsFound},
		{"StepByStep", pruneInSteps},
		{"Resumed", pruneResumed},
		{"KeysGoWithTheirMessage", pruneFreesKeys},
		{"Nonsense", pruneNonsense},
	}
}

// prune removes everything that is old, in steps of limit rows.
func (b *fixture) prune(limit int, dry bool) (done store.Pruned) {
	b.Helper()
	for cursor := ""; ; {
		step, err := b.st.Prune(b.ctx, store.Pruning{Limit: limit, Cursor: cursor, DryRun: dry})
		b.ok(err)
		done.Messages += step.Messages
		done.Letters += step.Letters
		done.Entries += step.Entries
		done.Documents += step.Documents
		if limit > 0 && step.Messages+step.Letters+step.Entries+step.Documents > int64(limit) {
			b.Fatalf("a step of %d rows removed %+v", limit, step)
		}
		if cursor = step.Next; cursor == "" {
			return done
		}
	}
}

// ends makes one message of each end without a letter.
func (b *fixture) ends() {
	b.Helper()
	b.ok(b.settle(nixie.Settlement{Delivery: b.took("succeeded"), Verb: nixie.Complete}))
	d := b.took("discarded")
	f := b.failure(d, "not wanted")
	f.Reason = nixie.ReasonValidation
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard, Failure: f}))
	b.ok(b.amend(b.put("canceled"), store.Cancel))
}

func pruneOld(b *fixture) {
	b.ends()
	b.clock.Advance(nixie.DefaultRetention - time.Second)
	b.ends()
	same(b, "pruned too early", b.prune(0, false).Messages, 0)
	b.clock.Advance(time.Second)
	same(b, "found by a dry run", b.prune(0, true).Messages, 3)
	same(b, "messages after a dry run", len(b.records()), 6)
	same(b, "pruned", b.prune(0, false).Messages, 3)
	same(b, "messages", len(b.records()), 3)
	same(b, "pruned again", b.prune(0, false).Messages, 0)
	q := b.info()
	if q.Total != 6 || q.Pruned != 3 || q.Succeeded != 2 || q.Discarded != 2 || q.Canceled != 2 || q.Discards[nixie.ReasonValidation] != 2 {
		b.Fatalf("the counts of a queue fell: %+v", q)
	}
	b.configure(nixie.QueueSettings{Retention: nixie.Forever})
	b.clock.Advance(nixie.MaxDelay)
	same(b, "pruned of a queue that keeps all", b.prune(0, false).Messages, 0)
}

// records lists all messages.
func (b *fixture) records() []store.Record {
	b.Helper()
	rs, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	return rs
}

func pruneNothingThatWaits(b *fixture) {
	b.configure(nixie.QueueSettings{Retention: time.Minute, LetterRetention: time.Minute})
	for _, status := range []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined, nixie.StatusRedriving} {
		b.letterIn(status)
	}
	b.took("leased")
	b.put("later", nixie.Delay(time.Hour))
	b.put("new")
	before := len(b.records())
	b.clock.Advance(24 * time.Hour)
	done := b.prune(0, false)
	same(b, "pruned", done.Messages+done.Letters, 0)
	same(b, "messages", len(b.records()), before)
}

func pruneLetters(b *fixture) {
	resolved, _ := b.letterIn(nixie.StatusResolved)
	discarded, _ := b.letterIn(nixie.StatusDiscarded)
	b.clock.Advance(365 * 24 * time.Hour)
	done := b.prune(0, false)
	same(b, "pruned by default", done.Messages+done.Letters, 0)
	b.letter(resolved.ID)
	b.configure(nixie.QueueSettings{LetterRetention: 366 * 24 * time.Hour})
	same(b, "pruned too early", b.prune(0, false).Letters, 0)
	b.clock.Advance(24 * time.Hour)
	same(b, "found by a dry run", b.prune(0, true).Letters, 2)
	same(b, "pruned", b.prune(0, false).Letters, 2)
	same(b, "messages", len(b.records()), 0)
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
	same(b, "counted", b.info().Pruned, 2)
	for _, id := range []nixie.ID{resolved.ID, discarded.ID} {
		events := b.events(id)
		if len(events) == 0 || events[len(events)-1] != store.OnPurge {
			b.Fatalf("audit of a pruned letter is %q", events)
		}
	}
}

// pruneAudit shows that the rest of a pruned chain can still be checked, also without the store,
// and that the chain goes on.
func pruneAudit(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for range 3 {
		b.ok(b.resolve(l.ID, store.OnHold))
		b.ok(b.resolve(l.ID, store.OnUnhold))
	}
	b.clock.Advance(nixie.DefaultAuditRetention)
	b.ok(b.resolve(l.ID, store.OnNote))
	same(b, "found by a dry run", b.prune(0, true).Entries, 7)
	same(b, "pruned", b.prune(0, false).Entries, 7)
	for range 2 {
		entries, err := allEntries(b.ctx, b.st, work)
		b.ok(err)
		first := entries[0]
		if first.Number != 8 || first.Event != store.OnNote || first.Before == (nixie.Hash{}) || first.Hash != first.Sum(first.Before) {
			b.Fatalf("first entry that is left: %+v", first)
		}
		if e := entries[1]; e.Number != 9 || e.Event != store.OnPrune || e.Actor == "" || e.Reason == "" || e.Before != first.Hash {
			b.Fatalf("entry of the pruning: %+v", e)
		}
		b.ok(b.resolve(l.ID, store.OnHold))
		b.ok(b.resolve(l.ID, store.OnUnhold))
	}
	b.sound()
	b.clock.Advance(nixie.DefaultAuditRetention)
	same(b, "pruned of a chain without young entries", b.prune(0, false).Entries, 5)
	b.sound()
	b.configure(nixie.QueueSettings{AuditRetention: nixie.Forever})
	b.clock.Advance(nixie.MaxDelay)
	same(b, "pruned of a queue that keeps all", b.prune(0, false).Entries, 0)
}

// pruneAsFound shows that a dry run gives the numbers of a run. That holds also when the removed
// letters add entries to the audit that is pruned after them.
func pruneAsFound(b *fixture) {
	b.configure(nixie.QueueSettings{LetterRetention: time.Hour, AuditRetention: time.Hour})
	for i := range 2 {
		b.ok(b.resolve(b.dead(fmt.Sprint(i), nixie.StatusOpen).ID, store.OnDiscard))
	}
	b.clock.Advance(2 * time.Hour)
	found := b.prune(0, true)
	same(b, "letters", found.Letters, 2)
	same(b, "pruned", b.prune(0, false), found)
	b.sound()
}

func pruneInSteps(b *fixture) {
	b.configure(nixie.QueueSettings{LetterRetention: time.Hour, AuditRetention: nixie.Forever})
	for i := range 5 {
		b.ends()
		b.ok(b.resolve(b.dead(fmt.Sprint(i), nixie.StatusOpen).ID, store.OnDiscard))
	}
	b.dead("stays", nixie.StatusOpen)
	b.clock.Advance(nixie.DefaultRetention)
	for _, dry := range []bool{true, false} {
		done := b.prune(2, dry)
		same(b, "messages", done.Messages, 15)
		same(b, "letters", done.Letters, 5)
	}
	same(b, "what is left", len(b.records()), 1)
}

// pruneResumed prunes in small steps, and reaches everything.
func pruneResumed(b *fixture) {
	for range 4 {
		b.ends()
	}
	b.clock.Advance(nixie.DefaultRetention)
	for range 20 {
		_, err := b.st.Prune(b.ctx, store.Pruning{Limit: 2, Resume: true})
		b.ok(err)
	}
	same(b, "what is left", len(b.records()), 0)
	b.ends()
	b.clock.Advance(nixie.DefaultRetention)
	for range 20 {
		_, err := b.st.Prune(b.ctx, store.Pruning{Limit: 2, Resume: true})
		b.ok(err)
	}
	same(b, "what is left after the next round", len(b.records()), 0)
}

// pruneFreesKeys shows that a key with the scope ever is held until retention removes its message.
func pruneFreesKeys(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeEver, Retention: time.Hour})
	b.ok(b.settle(nixie.Settlement{Delivery: b.took("a", nixie.DedupeKey("k")), Verb: nixie.Complete}))
	b.clock.Advance(time.Hour)
	b.prune(0, true)
	receipts, err := b.st.Enqueue(b.ctx, message("b", nixie.DedupeKey("k")))
	b.ok(err)
	same(b, "duplicate while the row is kept", receipts[0].Duplicate, true)
	b.prune(0, false)
	b.took("b", nixie.DedupeKey("k"))
}

func pruneNonsense(b *fixture) {
	b.ends()
	b.clock.Advance(nixie.DefaultRetention)
	b.unchanged(func() {
		for _, p := range []store.Pruning{{Limit: -1}, {Limit: nixie.MaxBatch + 1}, {Cursor: "nonsense"}, {Cursor: "1.2.3.4"},
			{Cursor: "1.9.0"}} {
			_, err := b.st.Prune(b.ctx, p)
			b.code(err, nixie.CodeInvalid)
		}
	})
	for _, s := range []nixie.QueueSettings{{Retention: time.Second}, {LetterRetention: -2}, {AuditRetention: time.Second}} {
		b.code(store.Configure(b.ctx, b.st, work, s, "ann", ""), nixie.CodeInvalid)
	}
}
