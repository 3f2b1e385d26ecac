package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Invariants fails the test for everything that [Broken] finds.
func Invariants(t testing.TB, st store.Store) {
	t.Helper()
	broken, err := Broken(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

// Broken lists what is wrong with a store that no process uses at the moment. It reads everything
// through the contract, and asks the store to check itself. It holds after any calls that
//
//	every message is in one state, and its fields agree with it;
//	attempts and crashes are at most deliveries, and the generation is redrives + 1;
//	every body has the hash that was taken at acceptance;
//	at most one message of a queue that waits for its first claim holds a dedupe key;
//	every dead message has one letter, every letter has a message, and their states agree;
//	the items of every operation add up, and the outcomes of a redrive to what it moved, as the
//	audit tells it;
//	the audit of a queue is an unbroken chain, and leads every letter through the table of moves to
//	its status;
//	the overview has the right counts.
func Broken(ctx context.Context, st store.Store) ([]string, error) {
	c := inspector{messages: map[nixie.ID]*store.Record{}, letters: map[nixie.ID]*nixie.Letter{}, status: map[nixie.ID]nixie.Status{},
		pruned: map[string]bool{}, moved: map[nixie.ID]nixie.ID{}, outcomes: map[nixie.ID]map[nixie.ID]store.Event{}}
	messages, err := allMessages(ctx, st, nixie.Filter{})
	if err != nil {
		return nil, err
	}
	c.lookAtMessages(messages)
	letters, err := allLetters(ctx, st, nixie.Filter{})
	if err != nil {
		return nil, err
	}
	c.lookAtLetters(letters)
	infos, err := st.Queues(ctx, store.QueueQuery{})
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		entries, err := allEntries(ctx, st, info.Name)
		if err != nil {
			return nil, err
		}
		c.lookAtChain(info.Name, entries)
	}
	for id, l := range c.letters {
		if c.status[id] == "" && c.pruned[l.Message.Queue] {
			continue
		}
		c.want(c.status[id] == l.Status, "letter %s is %s, and its audit leads to %q", id, l.Status, c.status[id])
	}
	if err := c.lookAtOperations(ctx, st); err != nil {
		return nil, err
	}
	c.lookAtCounts(infos, messages)
	report, err := st.Features().Check(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range report.Violations {
		c.broken = append(c.broken, fmt.Sprintf("the store itself says: %s %s: %s", v.Rule, v.Subject, v.Text))
	}
	return c.broken, nil
}

type inspector struct {
	broken   []string
	messages map[nixie.ID]*store.Record
	letters  map[nixie.ID]*nixie.Letter
	status   map[nixie.ID]nixie.Status // of a letter, computed from the audit
	pruned   map[string]bool           // queues whose first audit entry was pruned

	moved    map[nixie.ID]nixie.ID                 // by letter: the redrive that its end belongs to
	outcomes map[nixie.ID]map[nixie.ID]store.Event // by redrive and letter: the last event of each
	unasked  int64                                 // deaths of letters that no redrive had moved
}

func (c *inspector) want(ok bool, format string, args ...any) {
	if !ok {
		c.broken = append(c.broken, fmt.Sprintf(format, args...))
	}
}

func (c *inspector) lookAtMessages(all []store.Record) {
	type key struct{ queue, key string }
	holders := map[key]nixie.ID{}
	for i := range all {
		m := &all[i]
		c.want(c.messages[m.ID] == nil, "message %s is there twice", m.ID)
		c.messages[m.ID] = m
		c.want(slices.Contains(nixie.States(), m.State), "message %s is in the unknown state %q", m.ID, m.State)
		leased, unfinished := m.State == nixie.Leased, m.State == nixie.Queued || m.State == nixie.Leased
		c.want(leased == (m.LeaseOwner != ""), "message %s is %s and its lease has the owner %q", m.ID, m.State, m.LeaseOwner)
		c.want(leased == !m.LeaseExpiresAt.IsZero(), "message %s is %s and its lease ends at %s", m.ID, m.State, m.LeaseExpiresAt)
		c.want(unfinished == m.EndedAt.IsZero(), "message %s is %s and ended at %s", m.ID, m.State, m.EndedAt)
		c.want(m.Attempts >= 0 && m.Attempts <= m.Deliveries && m.Crashes >= 0 && m.Crashes <= m.Deliveries,
			"message %s has %d attempts and %d crashes in %d deliveries", m.ID, m.Attempts, m.Crashes, m.Deliveries)
		c.want(m.Generation == m.Redrives+1 && m.Redrives >= 0, "message %s is in generation %d after %d redrives", m.ID, m.Generation,
			m.Redrives)
		c.want(m.Hash == nixie.HashBody(m.Body), "the body of message %s is not the one that was accepted", m.ID)
		c.want(len(m.History) <= nixie.MaxHistory && m.HistoryDropped >= 0, "message %s has %d failures and dropped %d", m.ID,
			len(m.History), m.HistoryDropped)
		if n := len(m.History); n > 0 {
			c.want(m.LastFailure == m.History[n-1].Text, "message %s shows another failure than its last", m.ID)
		}
		c.want(m.Deliveries == 0 || !m.FirstReceivedAt.IsZero(), "message %s was delivered %d times and never received", m.ID, m.Deliveries)
		if own := (key{m.Queue, m.DedupeKey}); m.DedupeKey != "" && unfinished && m.FirstReceivedAt.IsZero() && m.Redrives == 0 {
			c.want(holders[own].IsZero(), "messages %s and %s both hold the dedupe key %q", holders[own], m.ID, m.DedupeKey)
			holders[own] = m.ID
		}
	}
}

func (c *inspector) lookAtLetters(all []nixie.Letter) {
	byMessage := map[nixie.ID]bool{}
	for i := range all {
		l := &all[i]
		c.want(c.letters[l.ID] == nil, "letter %s is there twice", l.ID)
		c.letters[l.ID] = l
		c.want(!byMessage[l.Message.ID], "message %s has two letters", l.Message.ID)
		byMessage[l.Message.ID] = true
		m := c.messages[l.Message.ID]
		if m == nil {
			c.want(false, "letter %s has no message", l.ID)
			continue
		}
		c.want(m.State == l.Message.State, "letter %s shows its message as %s, which is %s", l.ID, l.Message.State, m.State)
		c.want(m.Hash == nixie.HashBody(l.Message.Body), "letter %s has another body than its message", l.ID)
		c.want(len(m.History) == len(l.History), "letter %s has %d failures, its message %d", l.ID, len(l.History), len(m.History))
		moving := m.State == nixie.Queued || m.State == nixie.Leased
		c.want(moving == (l.Status == nixie.StatusRedriving), "letter %s is %s and its message %s", l.ID, l.Status, m.State)
		c.want(moving || !l.Status.Unresolved() || m.State == nixie.Dead, "letter %s is %s and its message %s", l.ID, l.Status, m.State)
		c.want(m.State != nixie.Succeeded || l.Status == nixie.StatusResolved, "letter %s is %s and its message succeeded", l.ID, l.Status)
		c.want(l.Status.Unresolved() == l.ResolvedAt.IsZero(), "letter %s is %s and was resolved at %s", l.ID, l.Status, l.ResolvedAt)
		c.want(!l.DiedAt.IsZero() && l.Revision > 0, "letter %s died at %s, revision %d", l.ID, l.DiedAt, l.Revision)
	}
	for id, m := range c.messages {
		c.want(m.State != nixie.Dead || byMessage[id], "message %s is dead and has no letter", id)
	}
}

func (c *inspector) lookAtChain(queue string, entries []store.AuditEntry) {
	if len(entries) == 0 {
		return
	}
	first := entries[0].Number
	c.pruned[queue] = first > 1
	c.want(first > 1 || entries[0].Before == nixie.Hash{}, "audit of queue %s: something is before the first entry", queue)
	for i := range entries {
		e := &entries[i]
		c.want(e.Number == first+int64(i) && e.Queue == queue, "audit of queue %s: entry %d has the number %d of queue %s", queue,
			first+int64(i), e.Number, e.Queue)
		c.want(i == 0 || e.Before == entries[i-1].Hash, "audit of queue %s: entry %d does not follow the one before", queue, e.Number)
		c.want(e.Hash == e.Sum(e.Before), "audit of queue %s: the hash of entry %d is wrong", queue, e.Number)
		c.follow(e)
		if c.letters[e.Subject] == nil || e.Event == store.OnNote || e.Event == store.OnAmend {
			continue
		}
		if first > 1 && c.status[e.Subject] == "" { // the entry of its first death was pruned
			c.status[e.Subject] = after(e.Event)
			continue
		}
		next, ok := store.NextStatus(c.status[e.Subject], e.Event)
		c.want(ok, "audit of queue %s: entry %d says %s of letter %s, which was %q", queue, e.Number, e.Event, e.Subject,
			c.status[e.Subject])
		c.status[e.Subject] = next
	}
}

// after returns the status to which an event leads from any status that allows it.
func after(on store.Event) nixie.Status {
	for _, m := range store.LetterMoves() {
		if m.On == on {
			return m.To
		}
	}
	return ""
}

// lookAtCounts compares the counts that do not depend on the time. checkCounts, which knows the
// time, compares ready and scheduled messages.
func (c *inspector) lookAtCounts(infos []store.QueueInfo, messages []store.Record) {
	counts := recount(messages, c.letters, time.Time{})
	for i := range infos {
		got, want := &infos[i], counts[infos[i].Name]
		gone := got.Pruned + got.Purged
		ended := [...]int64{got.Succeeded - want.Succeeded, got.Discarded - want.Discarded, got.Canceled - want.Canceled}
		discards := int64(0)
		for _, n := range got.Discards {
			discards += n
		}
		c.want(got.Ready+got.Blocked+got.Scheduled == want.Ready+want.Scheduled && got.Leased == want.Leased && got.Dead == want.Dead &&
			slices.Min(ended[:]) >= 0 && ended[0]+ended[1]+ended[2] <= gone && got.Total == want.Total+gone && got.Discarded == discards,
			"queue %s counts %+v, a recount gives %+v", got.Name, *got, want)
		delete(counts, got.Name)
	}
	for name := range counts {
		c.want(false, "queue %s has messages and is not in the overview", name)
	}
}

// recount computes an overview from the listings.
func recount(messages []store.Record, letters map[nixie.ID]*nixie.Letter, now time.Time) map[string]store.QueueInfo {
	status := map[nixie.ID]nixie.Status{}
	for _, l := range letters {
		status[l.Message.ID] = l.Status
	}
	counts := map[string]store.QueueInfo{}
	for i := range messages {
		m := &messages[i]
		info := counts[m.Queue]
		info.Total++
		switch m.State {
		case nixie.Queued:
			if m.NotBefore.After(now) {
				info.Scheduled++
				info.Due[store.DueBand(m.NotBefore.Sub(now))]++
				if m.NotBefore.After(info.LastAt) {
					info.LastAt = m.NotBefore
				}
			} else {
				info.Ready++
			}
		case nixie.Leased:
			info.Leased++
		case nixie.Succeeded:
			info.Succeeded++
		case nixie.Discarded:
			info.Discarded++
		case nixie.Canceled:
			info.Canceled++
		case nixie.Dead:
			if status[m.ID].Unresolved() {
				info.Dead++
			}
		}
		counts[m.Queue] = info
	}
	return counts
}

// checkCounts compares the overview with a recount as of now.
func checkCounts(b *fixture, st store.Store, now time.Time) {
	b.Helper()
	messages, err := allMessages(b.ctx, st, nixie.Filter{})
	b.ok(err)
	letters := map[nixie.ID]*nixie.Letter{}
	for _, l := range b.letters(nixie.Filter{}) {
		letters[l.ID] = &l
	}
	infos, err := st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	counts := recount(messages, letters, now)
	for _, got := range infos {
		want := counts[got.Name]
		want.Name, want.Settings = got.Name, got.Settings
		want.OldestAt, want.NextAt, want.BlockedAt = got.OldestAt, got.NextAt, got.BlockedAt
		want.Retried, want.Died, want.Discards = got.Retried, got.Died, got.Discards
		want.AskedAt = got.AskedAt
		want.Ready, want.Blocked = want.Ready-got.Blocked, got.Blocked
		same(b, "overview", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}
