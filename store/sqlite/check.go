package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// maxViolations is how many violations of one rule are listed.
const maxViolations = 100

// rule is an invariant as a query for what breaks it: an ID or name, and a text.
type rule struct{ name, query string }

// rules are the invariants between tables. Each query returns a subject and what
// is wrong with it.
var rules = [...]rule{
	{"message-lost", `select lower(hex(m.id)), 'handed out, but neither leased nor waiting nor ended' from message m join queue q on q.n = m.pos >> 40
		where (m.own = 1 or m.pos & 0xffffffffff <= q.cursor)
		and not exists (select 1 from pending p where p.pos = m.pos) and not exists (select 1 from log g where g.pos = m.pos)
		and (m.own = 1 or not exists (select 1 from batch b where m.pos between b.first and b.last))`},
	{"message-two-states", `select lower(hex(m.id)), 'waits and has ended' from pending p join log g on g.pos = p.pos left join message m on m.pos = p.pos`},
	{"message-passed-by", `select lower(hex(m.id)), 'has a row of its own or has ended, but a range will hand it out too' from message m join queue q on q.n = m.pos >> 40
		where m.own = 0 and m.pos & 0xffffffffff > q.cursor
		and (exists (select 1 from pending p where p.pos = m.pos) or exists (select 1 from log g where g.pos = m.pos))`},
	{"message-no-queue", `select lower(hex(m.id)), 'belongs to no queue' from message m where not exists (select 1 from queue q where q.n = m.pos >> 40)`},
	{"row-no-message", `select printf('place %d', p.pos), 'waits without its message' from pending p where not exists (select 1 from message m where m.pos = p.pos)
		union all select printf('place %d', g.pos), 'has ended without its message' from log g where not exists (select 1 from message m where m.pos = g.pos)
		union all select printf('place %d', f.pos), 'has failed without its message' from failure f where not exists (select 1 from message m where m.pos = f.pos)`},
	{"queue-count", `select q.name, 'newest message is ' || max(m.pos & 0xffffffffff) || ', the queue says ' || q.last from queue q join message m on m.pos > q.n << 40 and m.pos <= q.n << 40 | 0xffffffffff
		group by q.n having max(m.pos & 0xffffffffff) > q.last
		union all select q.name, 'has ' || count(m.pos) || ' new messages, the queue says ' || q.fresh from queue q
		left join message m on m.own = 0 and m.pos > q.n << 40 | q.cursor and m.pos <= q.n << 40 | 0xffffffffff group by q.n having count(m.pos) <> q.fresh
		union all select name, 'cursor ' || cursor || ' is beyond the newest message ' || last from queue where cursor > last`},
	{"waiting-count", `select q.name, 'counters of what waits differ from its rows' from queue q where exists (
			select queue, state, due >> 36, count(*) from pending where state <> 1 and queue = q.n group by 1, 2, 3 except select queue, state, slot, n from waiting)
		or exists (select queue, state, slot, n from waiting where queue = q.n except select queue, state, due >> 36, count(*) from pending where state <> 1 group by 1, 2, 3)`},
	{"retrying-count", `select q.name, 'counters of what retries differ from its rows' from queue q where exists (
			select queue, attempts, reason, state = 1, count(*) from pending where attempts > 0 and reason is not null and queue = q.n group by 1, 2, 3, 4 except select queue, attempts, reason, leased, n from retrying)
		or exists (select queue, attempts, reason, leased, n from retrying where queue = q.n except select queue, attempts, reason, state = 1, count(*) from pending where attempts > 0 and reason is not null group by 1, 2, 3, 4)`},
	{"queue-count", `with ends (state, name) as (values (2, 'succeeded'), (3, 'discarded'), (4, 'canceled'), (5, 'dead'))
		select queue, 'counts ' || counted || ' ' || name || ', log and tally have ' || there || ' and ' || gone from (
			select q.name as queue, e.name, case e.state when 2 then q.succeeded when 3 then q.discarded when 4 then q.canceled else q.dead end as counted,
				(select count(*) from log g where g.pos > q.n << 40 and g.pos <= q.n << 40 | 0xffffffffff and g.state = e.state) as there,
				coalesce((select sum(t.n) from tally t where t.queue = q.n and t.what in ('pruned', 'purged') and t.name = e.name), 0) as gone
			from queue q, ends e)
		where counted <> there + gone`},
	{"queue-tally", `select name, 'has ' || discarded || ' discarded, by reason they are ' || counted from (
			select *, (select coalesce(sum(n), 0) from tally where queue = queue.n and what = 'discarded') as counted from queue)
		where counted <> discarded`},
	{"batch-count", `select printf('batch %d', b.n), 'has ' || count(m.pos) || ' unsettled members, its row says ' || b.left from batch b
		left join message m on m.pos between b.first and b.last and m.own = 0
			and not exists (select 1 from pending p where p.pos = m.pos) and not exists (select 1 from log g where g.pos = m.pos)
		group by b.n having count(m.pos) <> b.left`},
	{"batch-apart", `select printf('batch %d', b.n), 'says that no member has a row of its own, and one has' from batch b
		where b.apart = 0 and exists (select 1 from pending p join message m on m.pos = p.pos and m.own = 0 where p.pos between b.first and b.last)`},
	{"lease-no-owner", `select lower(hex(m.id)), 'is leased by owner ' || p.owner || ', who is not registered' from pending p left join message m on m.pos = p.pos
		where p.state = 1 and not exists (select 1 from owner o where o.n = p.owner)
		union all select printf('batch %d', b.n), 'is held by owner ' || b.owner || ', who is not registered' from batch b where not exists (select 1 from owner o where o.n = b.owner)`},
	{"lease-stale", `select lower(hex(m.id)), 'is queued and has the end of a lease, or is leased without one' from pending p left join message m on m.pos = p.pos
		where (p.state = 1) = (p.until = 0) or (p.state = 1) = (p.owner = 0) or p.state not in (0, 1, 6)`},
	{"stream-lost", `select lower(hex(m.id)), 'is in a stream that is not its own' from pending p join message m on m.pos = p.pos left join stream s on s.n = p.stream
		where p.stream is not null and (s.n is null or s.queue <> p.queue or s.name is not m.stream) or p.stream is null and p.state = 6
		union all select lower(hex(l.id)), 'is in a stream that is not its own, or on its way or resolved and in one' from letter l join message m on m.pos = l.pos left join stream s on s.n = l.stream
		where l.stream is not null and (s.n is null or s.queue <> l.queue or s.name is not m.stream or l.status not in ('open', 'review', 'quarantined'))
		union all select s.name, 'is empty, or belongs to no queue or to one without order' from stream s left join queue q on q.n = s.queue
		where coalesce(json_extract(q.settings, '$.order'), 'none') = 'none'
		or not exists (select 1 from pending p where p.stream = s.n) and not exists (select 1 from letter l where l.stream = s.n)`},
	{"stream-two-leases", `select s.name, 'has ' || count(*) || ' messages out at once' from pending p join stream s on s.n = p.stream where p.state = 1 group by s.n having count(*) > 1
		union all select s.name, 'hands out another message while one is out' from stream s
		where exists (select 1 from pending p where p.stream = s.n and p.state = 1) and exists (select 1 from pending p where p.stream = s.n and p.state = 0)`},
	{"stream-stuck", `select s.name, 'waits, and nothing holds up its first message' from stream s join queue q on q.n = s.queue
		where not exists (select 1 from pending p where p.stream = s.n and p.state = 1) and exists (select 1 from pending p where p.stream = s.n and p.state = 6
			and p.rank = case json_extract(q.settings, '$.order')
				when 'strict' then (select min(f.rank) from pending f where f.stream = s.n)
				else (select f.rank from pending f where f.stream = s.n order by f.due, f.rank limit 1) end
			and not exists (select 1 from letter l where l.stream = s.n and l.blocks = 1 and l.rank < p.rank))`},
	{"stream-order", `select s.name, 'hands out a message before its turn' from stream s join queue q on q.n = s.queue
		where exists (select 1 from pending p where p.stream = s.n and p.state = 0 and p.may_pass = 0
			and (p.rank <> case json_extract(q.settings, '$.order')
				when 'strict' then (select min(f.rank) from pending f where f.stream = s.n)
				else (select f.rank from pending f where f.stream = s.n order by f.due, f.rank limit 1) end
			or exists (select 1 from letter l where l.stream = s.n and l.blocks = 1 and l.rank < p.rank)))`},
	{"counters", `select lower(hex(m.id)), 'has impossible counters: ' || p.attempts || ' attempts, ' || p.deliveries || ' deliveries, lease ' || p.number from pending p left join message m on m.pos = p.pos
		where p.attempts < 0 or p.deliveries < p.attempts or p.crashes > p.deliveries or p.number < p.deliveries or p.generation <> p.redrives + 1`},
	{"key-orphan", `select d.key, 'is held for a message that is gone, has another key, or has let it go' from dedupe d left join current c on c.pos = d.pos join queue q on q.n = d.queue
		where c.pos is null or c.dedupe is not d.key or c.queue <> d.queue
		or q.widest = 0 and c.state not in (0, 1)
		or q.widest = 1 and c.state not in (0, 1)
			and not exists (select 1 from letter l where l.pos = c.pos and l.status not in ('resolved', 'discarded'))`},
	{"key-missing", `select lower(hex(c.id)), 'is on its way, but its dedupe key ' || c.dedupe || ' is not held by it' from current c
		where c.dedupe is not null and c.state in (0, 1) and not exists (select 1 from dedupe d where d.queue = c.queue and d.key = c.dedupe and d.pos = c.pos)`},
	{"letter-no-message", `select lower(hex(l.id)), 'has no message' from letter l where not exists (select 1 from message m where m.pos = l.pos)`},
	{"letter-missing", `select lower(hex(m.id)), 'is dead without a letter' from log g join message m on m.pos = g.pos where g.state = 5 and not exists (select 1 from letter l where l.pos = g.pos)`},
	{"letter-status", `select lower(hex(l.id)), 'is ' || l.status || ' while its message is in state ' || c.state from letter l join current c on c.pos = l.pos
		where l.status in ('open', 'review', 'quarantined') and c.state <> 5 or l.status = 'redriving' and c.state not in (0, 1)
		or l.status not in ('open', 'review', 'quarantined', 'redriving', 'resolved', 'discarded')`},
	{"letter-kind", `select lower(hex(l.id)), 'is not what its kind says' from letter l join current c on c.pos = l.pos left join kind k on k.n = l.kind
		where k.n is null or k.queue <> l.queue or k.type is not coalesce(c.type, '') or k.status <> l.status or k.cause <> l.cause or k.class <> l.class or k.reason <> l.reason
		or k.signature <> l.signature or k.fingerprint <> l.fingerprint or k.redrivable <> l.redrivable or k.needs_review <> l.needs_review or k.redrives <> c.redrives
		or (k.attempts, k.crashes) <> (iif(k.status = 'redriving', 0, c.attempts), iif(k.status = 'redriving', 0, c.crashes)) or l.flow is not c.stream`},
	{"letter-count", `select printf('kind %d', k.n), 'has ' || count(l.pos) || ' letters, its row says ' || k.letters from kind k left join letter l on l.kind = k.n group by k.n having count(l.pos) <> k.letters
		union all select printf('kind %d', k.n), 'has ' || letters || ' letters, the counters of its hours say ' || sum(coalesce(d.n, 0)) from kind k left join deaths d on d.kind = k.n group by k.n having sum(coalesce(d.n, 0)) <> letters
		union all select printf('kind %d', d.kind), 'has another number of letters that died in hour ' || d.hour || ' than the counter says' from deaths d
		where d.n <> (select count(*) from letter where kind = d.kind and died >= d.hour * 3600000000000 and died < (d.hour + 1) * 3600000000000) or not exists (select 1 from kind k where k.n = d.kind)`},
	{"letter-text", `select lower(hex(l.id)), 'does not say what its newest failure says' from letter l where l.text <> (select text from failure f where f.pos = l.pos order by f.ordinal desc limit 1)`},
	{"letter-history", `select lower(hex(l.id)), 'has no failure in its history' from letter l where l.text <> '' and not exists (select 1 from failure f where f.pos = l.pos)`},
	{"note-orphan", `select printf('letter %d', o.letter), 'has a note and is gone' from note o where not exists (select 1 from letter l where l.pos = o.letter)`},
	{"original-orphan", `select printf('place %d', o.pos), 'was edited and has no letter' from original o where not exists (select 1 from letter l where l.pos = o.pos)`},
	{"attachment-orphan", `select printf('failure %d of place %d', a.failure, a.pos), 'has an attachment and is gone' from attachment a where not exists (select 1 from failure f where f.pos = a.pos and f.ordinal = a.failure)`},
	{"operation-item", `select printf('operation %d', i.operation), 'has an item without letter or operation, or in no known state' from item i
		where i.state = 'pending' and not exists (select 1 from letter l where l.pos = i.letter)
		or i.letter & 0xffffffffff > coalesce((select last from queue where n = i.letter >> 40), 0) or not exists (select 1 from operation o where o.n = i.operation)
		or i.state not in ('pending', 'done', 'skipped', 'failed')`},
}

// Check implements store.Keeper: every invariant between the tables, every hash, sum and
// chain, and the schema, in one snapshot.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	report := store.Report{Violations: []store.Violation{}}
	err := s.read(ctx, func(c conn) error {
		for _, check := range [...]func(conn, *store.Report) error{checkPages, s.checkSchema, checkRules, checkBodies, checkSums, checkChains} {
			if err := check(c, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}

// checkPages asks the engine about the file itself.
func checkPages(c conn, r *store.Report) error {
	return c.each("pragma integrity_check(10)", func(row rows) error {
		if found := row.ColumnText(0); found != "ok" {
			r.Violations = append(r.Violations, store.Violation{Rule: "file", Subject: "file", Text: found})
		}
		return nil
	})
}

// checkSchema compares tables, indexes and views with what the migrations make of them.
// Tables of the caller lie in the same file.
func (s *Store) checkSchema(c conn, r *store.Report) error {
	m, err := NewSchema(s.path)
	if err != nil {
		return err
	}
	list, err := m.compare(c)
	for _, v := range list {
		if !strings.HasSuffix(v.Rule, "-unknown") {
			r.Violations = append(r.Violations, v)
		}
	}
	return err
}

func checkRules(c conn, r *store.Report) error {
	for _, table := range [...]string{"queue", "batch", "pending", "log", "failure", "letter", "dedupe", "item"} {
		n, err := c.number("select count(*) from " + table)
		if err != nil {
			return err
		}
		r.Checked += n
	}
	for _, rule := range rules {
		if err := c.each(rule.query+fmt.Sprintf(" limit %d", maxViolations), func(row rows) error {
			r.Violations = append(r.Violations, store.Violation{Rule: rule.name, Subject: dashed(row.ColumnText(0)), Text: row.ColumnText(1)})
			return nil
		}); err != nil {
			return fmt.Errorf("rule %s: %w", rule.name, err)
		}
	}
	return nil
}

// dashed writes the hex of an ID the usual way and leaves other names alone.
func dashed(s string) string {
	if len(s) != 32 {
		return s
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func checkBodies(c conn, r *store.Report) error {
	found := 0
	return c.each("select id, body, hash from message union all select m.id, o.body, o.hash from original o left join message m on m.pos = o.pos", func(row rows) error {
		r.Checked++
		var have nixie.Hash
		row.ColumnBytes(2, have[:])
		if nixie.HashBody(columnBytes(row, 1)) != have && found < maxViolations {
			found++
			r.Violations = append(r.Violations, store.Violation{Rule: "body-hash", Subject: columnID(row, 0).String(), Text: "its body is not the one that was accepted"})
		}
		return nil
	})
}

func checkChains(c conn, r *store.Report) error {
	var before nixie.Hash
	queue, number, found := "", int64(0), 0
	return c.each(`select q.name, a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash, coalesce(o.number, 0), o.hash, a.operation from audit a left join queue q on q.n = a.queue
		left join anchor o on o.queue = a.queue order by a.queue, a.number`, func(row rows) error {
		r.Checked++
		e := store.AuditEntry{
			Queue: row.ColumnText(0), Number: row.ColumnInt64(1), At: lifecycle.Moment(row.ColumnInt64(2)), Actor: row.ColumnText(3),
			Event: nixie.Event(row.ColumnText(4)), Subject: columnID(row, 5), Reason: row.ColumnText(6), Operation: columnID(row, 10),
		}
		row.ColumnBytes(7, e.Hash[:])
		if e.Queue != queue {
			queue, number, before = e.Queue, row.ColumnInt64(8), nixie.Hash{}
			row.ColumnBytes(9, before[:])
		}
		number++
		if (e.Number != number || e.Sum(before) != e.Hash) && found < maxViolations {
			found++
			r.Violations = append(r.Violations, store.Violation{Rule: "audit-chain", Subject: queue, Text: "entry " + strconv.FormatInt(e.Number, 10) + " was changed, added or follows a removed one"})
			number = e.Number
		}
		before = e.Hash
		return nil
	})
}
