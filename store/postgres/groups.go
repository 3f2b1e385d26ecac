package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// groupings are the properties that letters l with their messages c are grouped
// by, as texts.
var groupings = map[nixie.GroupBy]string{
	nixie.ByFingerprint: "l.fingerprint",
	nixie.ByReason:      "l.reason",
	nixie.ByClass:       "l.class",
	nixie.ByType:        "c.type",
	nixie.ByQueue:       "c.queue_name",
	nixie.ByStatus:      "l.status",
	nixie.ByHour:        `to_char(to_timestamp(floor(l.died / 3600e9) * 3600) at time zone 'UTC', 'YYYY-MM-DD"T"HH24')`,
	nixie.ByRedrivable:  "case when l.redrivable then 'yes' else 'no' end",
	nixie.ByReview:      "case when l.needs_review then 'yes' else 'no' end",
	nixie.ByAttempts:    "c.attempts::text",
}

// Groups implements store.DeadLetters. It always looks at all.
func (s *Store) Groups(ctx context.Context, filter nixie.Filter, _ store.Look, by nixie.GroupBy) ([]nixie.Group, store.Looked, error) {
	if err := store.CheckGroupings(by); err != nil {
		return nil, store.Looked{}, err
	}
	list := []nixie.Group{}
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		w := letterWhere(&filter, t.now)
		t.read(func(r row) error {
			var g nixie.Group
			var first, last int64
			var label string
			var reason nixie.Reason
			var example nixie.ID
			if err := r.Scan(&g.Key, &g.Count, &first, &last, &label, &reason, (*idColumn)(&example)); err != nil {
				return err
			}
			if n := len(list); n > 0 && list[n-1].Key == g.Key {
				list[n-1].Examples = append(list[n-1].Examples, example)
				return nil
			}
			g.FirstAt, g.LastAt, g.Examples = lifecycle.Moment(first), lifecycle.Moment(last), []nixie.ID{example}
			if by == nixie.ByFingerprint {
				g.Label, g.Reason = label, reason
			}
			list = append(list, g)
			return nil
		}, fmt.Sprintf(`with found as (select %s as key, l.id, l.died, l.signature, l.reason,
				row_number() over (partition by %[1]s order by l.died desc, l.pos desc) as nth
				from @.letter l join @.current c on c.pos = l.pos where %s),
			sums as (select key, count(*) as n, min(died) as first, max(died) as last from found group by key)
			select s.key, s.n, s.first, s.last, f.signature, f.reason, f.id from sums s join found f on f.key = s.key and f.nth <= %d
			order by s.n desc, s.key collate "C", f.nth`, groupings[by], w, store.Examples), w.args...)
		return t.send()
	})
	return list, store.Looked{}, err
}

// Counts implements store.DeadLetters. It always looks at all.
func (s *Store) Counts(ctx context.Context, filter nixie.Filter, _ store.Look, by ...nixie.GroupBy) ([]map[string]int64, store.Looked, error) {
	if err := store.CheckGroupings(by...); err != nil {
		return nil, store.Looked{}, err
	}
	counts := make([]map[string]int64, len(by))
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		w := letterWhere(&filter, t.now)
		for i, g := range by {
			counts[i] = map[string]int64{}
			t.read(func(r row) error {
				var key string
				var n int64
				err := r.Scan(&key, &n)
				counts[i][key] = n
				return err
			}, fmt.Sprintf("select %s, count(*) from @.letter l join @.current c on c.pos = l.pos where %s group by 1", groupings[g], w), w.args...)
		}
		return t.send()
	})
	return counts, store.Looked{}, err
}

// Tally implements store.Overview.
func (s *Store) Tally(ctx context.Context, filter nixie.Filter, by nixie.GroupBy) ([]nixie.Tally, error) {
	if !slices.Contains(nixie.TalliedBy(), by) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "messages cannot be counted by %q: give one of %v", by, nixie.TalliedBy())
	}
	key := map[nixie.GroupBy]string{nixie.ByAttempts: "c.attempts::text", nixie.ByReason: "c.reason", nixie.ByType: "c.type", nixie.ByQueue: "c.queue_name"}[by]
	list := []nixie.Tally{}
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		w := messageWhere(&filter, t.now)
		w.add("c.state in (0, 1) and c.attempts > 0 and c.reason <> ''")
		t.read(func(r row) error {
			var of nixie.Tally
			err := r.Scan(&of.Key, &of.Queued, &of.Leased)
			list = append(list, of)
			return err
		}, fmt.Sprintf("select %s, count(*) filter (where c.state = 0), count(*) filter (where c.state = 1) from @.current c where %s group by 1", key, w), w.args...)
		return t.send()
	})
	nixie.SortTallies(list, by)
	return list, err
}
