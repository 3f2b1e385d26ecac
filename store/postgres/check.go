package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// maxViolations is how many violations of one rule are listed.
const maxViolations = 100

// rule is an invariant as a query for what breaks it: an ID or name, and a text.
type rule struct{ name, query string }

// rules are the invariants between tables.
var rules = [...]rule{
	{"message-lost", `select c.id::text, 'is neither on its way nor has it ended' from @.current c where c.lies is null or c.lies = 4 and c.pos not in (select pos from @.fresh)`},
	{"message-two-states", `select p.pos::text, 'is on its way and has ended' from @.pending p join @.log l on l.pos = p.pos
		union all select c.id::text, 'is before all ranges and was handed out' from @.fresh f join @.current c on c.pos = f.pos where c.lies <> 4`},
	{"batch-count", `select 'batch ' || b.n, 'is about ' || (select count(*) from @.member m where m.batch = b.n) || ' messages, not ' || b.remains from @.batch b
		where b.remains <> (select count(*) from @.member m where m.batch = b.n) or b.remains < 1`},
	{"span-count", `select 'span after ' || s.after, 'is about other messages than ' || s.members || ' that succeeded and have no rows' from @.span s
		where s.members <> (select count(*) from @.success x where (x.queue, x.after_tx, x.after) = (s.queue, s.after_tx, s.after)
			and not exists (select from @.log l where l.pos = x.pos) and not exists (select from @.pending p where p.pos = x.pos))
		or (s.last_tx, s.last) <> (select m.tx, m.pos from @.message m where m.queue = s.queue and not m.apart and (m.tx, m.pos) > (s.after_tx, s.after) order by m.tx, m.pos offset s.members - 1 limit 1)
		or exists (select from (select o.after_tx, o.after from @.span o where o.queue = s.queue and (o.after_tx, o.after) > (s.after_tx, s.after) order by o.after_tx, o.after limit 1) o where (o.after_tx, o.after) < (s.last_tx, s.last))`},
	{"message-queue", `select m.id::text, 'is in another queue than what is known of it, or in none' from @.message m left join @.pending p on p.pos = m.pos left join @.log l on l.pos = m.pos
		where m.queue <> coalesce(p.queue, l.queue) or not exists (select from @.queue q where q.n = m.queue)`},
	{"message-id", `select m.id::text, 'has an ID that says another place' from @.message m where m.numbered and @.pos_of(m.id) <> m.pos
		union all select m.id::text, 'has the ID of another' from @.message m join @.message o on o.pos = @.pos_of(m.id) and o.id = m.id where not m.numbered and o.pos <> m.pos`},
	{"row-no-message", `select 'place ' || x.pos, 'is kept without its message' from (select pos from @.pending union all select pos from @.log union all select pos from @.failure union all select pos from @.letter union all select pos from @.dedupe) x
		where not exists (select from @.message m where m.pos = x.pos)`},
	{"lease-stale", `select p.pos::text, 'is queued and has a lease, or is leased without one' from @.pending p where (p.state = 1) <> (p.owner <> 0) or (p.state = 1) <> (p.until <> 0)`},
	{"counters", `select p.pos::text, 'has impossible counters' from @.pending p where p.attempts < 0 or p.attempts > p.deliveries or p.crashes > p.deliveries or p.deliveries > p.number or p.generation <> p.redrives + 1`},
	{"stream-lost", `select p.pos::text, 'is in a stream that is not its own, or behind in none' from @.pending p join @.message m on m.pos = p.pos left join @.stream s on s.n = p.stream
		where p.stream is not null and (s.n is null or s.name is distinct from m.stream or s.queue <> p.queue) or p.stream is null and p.state = 6
		union all select m.pos::text, 'is in the lane of a stream that is not its own' from @.stream s join @.message m on m.lane = s.n and m.pos > s.at where s.name is distinct from m.stream or s.queue <> m.queue`},
	{"stream-empty", `select s.name, 'is of a queue without order' from @.stream s join @.queue q on q.n = s.queue where coalesce(q.settings->>'order', 'none') not in ('strict', 'relaxed')`},
	{"stream-two-leases", `select s.name, 'has two messages out at once, or hands out another while one is out' from @.stream s ` + leasedOf + `
		where leased.pos is not null and (select count(*) from @.pending p where p.stream = s.n and p.state <> 6) + (s.turned and exists (` + laneFirst + `))::int > 1
		union all select (select s.name from @.stream s where s.n = t.stream), 'has a turn twice, or one that is not that of its first message' from (
			select stream, pos from @.turned union all select lane, pos from @.member where lane is not null) t group by t.stream
			having count(*) > 1 or min(t.pos) is distinct from (select f.pos from @.stream s cross join lateral (` + laneFirst + `) f where s.n = t.stream and s.turned)`},
	{"stream-stuck", `select s.name, 'waits, and nothing holds up its first message' from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s ` + leasedOf + ` ` + firstOf + `
		where s.n not in (select u.stream from @.turn t cross join lateral unnest(t.streams, t.places) u (stream, place) cross join lateral @.found(u.stream, -u.place) f where u.place < 0 and f.pos is null)
			and first.pos is not null and not ` + isDead + ` and leased.pos is null
			and (first.lane and not (s.turned and exists (select from @.turned t where t.pos = first.pos)) or exists (select from @.pending p where p.pos = first.pos and p.state = 6))`},
	{"stream-order", `select s.name, 'hands out a message before its turn' from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s ` + firstOf + `
		where exists (select from @.pending p where p.stream = s.n and p.state = 0 and not p.may_pass and (p.pos <> first.pos or ` + isDead + `)) or first.lane and s.turned and ` + isDead},
	{"stream-mixed", `select s.name, 'does not know whether there is more to it than its lane' from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s ` + firstOf + `
		where s.mixed <> (exists (select from @.pending p where p.stream = s.n) or exists (select from @.letter l where l.stream = s.n) or coalesce(first.lane and first.pos < s.top, false))`},
	{"letter-message", `select l.id::text, 'is ' || l.status || ' and its message does not agree' from @.letter l left join @.current c on c.pos = l.pos
		where c.pos is null or (c.state in (0, 1)) <> (l.status = 'redriving') or l.status in ('open', 'review', 'quarantined') and c.state <> 5 or (l.resolved = 0) <> (l.status not in ('resolved', 'discarded'))`},
	{"letter-id", `select l.id::text, 'has an ID that says another place' from @.letter l where l.numbered and @.pos_of(l.id) <> l.pos
		union all select l.id::text, 'has the ID of another' from @.letter l join @.letter o on o.pos = @.pos_of(l.id) and o.id = l.id where not l.numbered and o.pos <> l.pos`},
	{"letter-failure", `select l.id::text, 'has a failure of its own that is not the newest, or not whole' from @.letter l
		where (l.doc is null) <> (l.ordinal is null) or (l.doc is null) <> (l.at is null) or (l.doc is null) <> (l.decision is null) or l.doc is not null and exists (select from @.failure f where f.pos = l.pos and f.ordinal >= l.ordinal)`},
	{"original-orphan", `select 'place ' || o.pos, 'was edited and has no letter' from @.original o where not exists (select from @.letter l where l.pos = o.pos)`},
	{"message-letter", `select l.pos::text, 'is dead without a letter' from @.log l where l.state = 5 and not exists (select from @.letter x where x.pos = l.pos)`},
	{"key-missing", `select m.id::text, 'is on its way, and its dedupe key is not held by it' from @.pending p join @.message m on m.pos = p.pos
		where m.dedupe is not null and not exists (select from @.dedupe d where d.queue = m.queue and d.key = m.dedupe and d.pos = m.pos)`},
	{"key-orphan", `select d.key, 'is held by a message that has another' from @.dedupe d left join @.message m on m.pos = d.pos where m.dedupe is distinct from d.key or m.queue <> d.queue`},
	{"audit-chain", `select q.name, 'the chain of the audit has gaps, or another end' from @.chain c join @.queue q on q.n = c.queue
		where (select count(*) from @.entry e where e.queue = c.queue) <> c.number - c.gone_number
		or c.number > c.gone_number and not exists (select from @.entry e where e.queue = c.queue and e.last = c.number and e.number = c.number and e.hash = c.hash)
		or exists (select from @.audit a where a.queue = c.queue and octet_length(a.hashes) <> 32 * cardinality(a.subjects))`},
	{"queue-count", `select 'queue ' || queue, 'counts ' || sum(n) || ' more than its log has, in state ' || state from (
		select queue, state, reason, n from @.counter union all select queue, state, case state when 3 then coalesce(nullif(reason, ''), 'unknown') else '' end, -1 from @.log union all select queue, 2, '', -members from @.span) c
		group by queue, state, reason having sum(n) <> 0`},
	{"letter-count", `select 'queue ' || queue, 'counts ' || sum(n) || ' letters more than it has that are ' || status || ', of reason ' || reason || ', from hour ' || hour from (
		select queue, status, reason, kind, hour, letters as n from @.death union all select queue, status, reason, kind, hour, -1 from @.letter) c
		group by queue, status, reason, kind, hour having sum(n) <> 0`},
	{"operation-letter", `select o.id::text, 'waits for a letter that is gone' from @.item i join @.operation o on o.n = i.operation where i.state = 'pending' and not exists (select from @.letter l where l.pos = i.letter)`},
}

// Check implements store.Keeper.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	var report store.Report
	err := s.view(ctx, func(t *tx) error {
		for _, table := range [...]string{"message", "pending", "log", "span", "letter", "history", "entry", "item"} {
			t.read(func(r row) error {
				var n int64
				err := r.Scan(&n)
				report.Checked += n
				return err
			}, "select count(*) from @."+table)
		}
		for _, of := range rules {
			t.read(func(r row) error {
				v := store.Violation{Rule: of.name}
				err := r.Scan(&v.Subject, &v.Text)
				report.Violations = append(report.Violations, v)
				return err
			}, "select * from ("+of.query+") v limit $1", maxViolations)
		}
		t.checkBodies(&report)
		t.checkChains(&report)
		return t.send()
	})
	return report, err
}

// checkBodies counts every hash again, as the database does not know what was
// accepted.
func (t *tx) checkBodies(report *store.Report) {
	t.read(func(r row) error {
		v := store.Violation{Rule: "message-hash", Text: bodyDamage}
		err := r.Scan(&v.Subject)
		report.Violations = append(report.Violations, v)
		return err
	}, `select coalesce(m.id::text, 'place ' || o.pos) from (select pos, body, hash from @.message union all select pos, body, hash from @.original) o left join @.message m on m.pos = o.pos
		where sha256(o.body) <> o.hash order by o.pos limit $1`, maxViolations)
}

// checkChains counts every link of the audits again.
func (t *tx) checkChains(report *store.Report) {
	var queue string
	var before nixie.Hash
	t.read(func(r row) error {
		var e store.AuditEntry
		var at int64
		if err := r.Scan(&e.Queue, &e.Number, &at, &e.Actor, &e.Event, (*idColumn)(&e.Subject), &e.Reason, (*hashColumn)(&e.Hash), (*hashColumn)(&e.Before), (*idColumn)(&e.Operation)); err != nil {
			return err
		}
		e.At = lifecycle.Moment(at)
		if e.Queue != queue {
			queue, before = e.Queue, e.Before
		}
		if e.Hash != e.Sum(before) {
			report.Violations = append(report.Violations, store.Violation{Rule: "audit-chain", Subject: queue, Text: fmt.Sprintf("entry %d was changed", e.Number)})
		}
		before = e.Hash
		return nil
	}, `select q.name, a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash, case when a.number = c.gone_number + 1 then c.gone_hash else '' end, a.operation
		from @.entry a join @.queue q on q.n = a.queue join @.chain c on c.queue = a.queue order by a.queue, a.last, a.number`)
}
