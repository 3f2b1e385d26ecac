package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Check reads everything and reports broken invariants.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	if _, err := s.enter(ctx); err != nil {
		return store.Report{}, err
	}
	defer s.mu.Unlock()
	c := checker{shared: s.shared}
	for _, m := range s.messages {
		c.message(m)
	}
	for _, l := range s.born {
		c.letter(l)
	}
	for _, q := range s.queues {
		c.queue(q)
	}
	for _, o := range s.operations {
		c.operation(o)
	}
	slices.SortFunc(c.Violations, func(a, b store.Violation) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
	return c.Report, nil
}

type checker struct {
	*shared
	store.Report
}

// want reports a violation unless ok.
func (c *checker) want(ok bool, rule, subject, text string) {
	if !ok {
		c.Violations = append(c.Violations, store.Violation{Rule: rule, Subject: subject, Text: text})
	}
}

func (c *checker) message(m *message) {
	c.Checked++
	id := m.ID.String()
	q := c.queues[m.Queue]
	c.want(q != nil && slices.Contains(q.all, m), "message-queue", id, "its queue does not list it")
	c.want(slices.Contains(nixie.States(), m.State), "message-state", id, "unknown state "+string(m.State))
	c.want(m.Hash == nixie.HashBody(m.Body), "message-hash", id, "body is not the one that was accepted")
	c.want((m.State == nixie.Leased) == (m.holder != nil), "message-lease", id, "leased without a holder, or held without a lease")
	c.want(m.EndedAt.IsZero() == (m.State == nixie.Queued || m.State == nixie.Leased), "message-end", id, "end time and state differ")
	c.want(m.Attempts >= 0 && m.Attempts <= m.Deliveries && m.Crashes <= m.Deliveries && int64(m.Deliveries) <= m.number,
		"message-counts", id, "attempts and crashes are more than deliveries, or those more than leases")
	c.want(m.Generation == m.Redrives+1, "message-generation", id, "generation is not redrives + 1")
	c.want(m.State != nixie.Dead || m.letter != nil, "message-letter", id, "dead without a letter")
	c.want(len(m.history) <= nixie.MaxHistory, "message-history", id, "history is longer than the limit")
	if q == nil {
		return
	}
	unfinished := m.State == nixie.Queued || m.State == nixie.Leased
	c.want(!m.holdsKey || q.keys[m.DedupeKey] == m, "key-holder", id, "it holds a dedupe key that the queue gives to another")
	c.want(m.DedupeKey == "" || m.holdsKey || m.keyless || !unfinished, "key-missing", id, "unfinished without its dedupe key")
	c.want(!unfinished || slices.Contains(q.live, m), "message-live", id, "unfinished and never handed out")
}

func (c *checker) letter(l *letter) {
	c.Checked++
	id := l.ID.String()
	c.want(c.letters[l.ID] == l && c.messages[l.message.ID] == l.message && l.message.letter == l,
		"letter-message", id, "letter and message do not name each other")
	c.want(slices.Contains(nixie.Statuses(), l.Status), "letter-status", id, "unknown status "+string(l.Status))
	state := l.message.State
	moving := state == nixie.Queued || state == nixie.Leased
	c.want(moving == (l.Status == nixie.StatusRedriving), "letter-redriving", id, "status and state of the message disagree")
	waits := l.Status != nixie.StatusRedriving && l.Status.Unresolved()
	c.want(!waits || state == nixie.Dead, "letter-dead", id, "unresolved, and its message is not dead")
	c.want(l.ResolvedAt.IsZero() == l.Status.Unresolved(), "letter-end", id, "end time and status differ")
}

func (c *checker) queue(q *queue) {
	c.Checked += 1 + int64(len(q.chain))
	for key, m := range q.keys {
		c.want(m.holdsKey && m.DedupeKey == key && m.Queue == q.name, "key-orphan", q.name, "dedupe key without its holder: "+key)
	}
	for i := range q.chain {
		e := &q.chain[i]
		follows := i == 0 || e.Number == q.chain[i-1].Number+1 && e.Before == q.chain[i-1].Hash
		c.want(follows && e.Queue == q.name && e.Hash == e.Sum(e.Before), "audit-chain", q.name, "the chain of the audit is broken")
	}
}

func (c *checker) operation(o *operation) {
	c.Checked += 1 + int64(len(o.plan))
	n := o.count()
	c.want(n.Selected == n.Done+n.Skipped+n.Failed+n.Pending && len(o.items) == len(o.plan) && n.Selected == int64(len(o.plan)),
		"operation-counts", o.ID.String(), "items do not add up")
	for _, id := range o.plan {
		l, it := c.letters[id], o.items[id]
		c.want(l != nil || it.state != lifecycle.ItemPending,
			"operation-letter", o.ID.String(), "a pending item names an unknown letter")
		moving := l != nil && l.Operation == o.ID && l.Status == nixie.StatusRedriving
		c.want(moving == (it.state == lifecycle.ItemUnderWay),
			"operation-outcome", o.ID.String(), "an item is under way and its letter is not, or the other way round")
		c.want(it.state != lifecycle.ItemDone || o.Event != store.OnRedrive,
			"operation-outcome", o.ID.String(), "an item of a redrive is done without an outcome")
	}
}
