package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

const hourName = `to_char(to_timestamp(l.hour * 3600.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24')`

// groupings has the properties of letters and deaths l that groups are made by, as texts.
var groupings = map[store.GroupBy]string{
	store.ByFingerprint: "l.fingerprint",
	store.ByReason:      "l.reason",
	store.ByClass:       "l.class",
	store.ByType:        "l.type",
	store.ByQueue:       "(select name from @.queue where n = l.queue)",
	store.ByStatus:      "l.status",
	store.ByHour:        hourName,
	store.ByRedrivable:  "case when l.redrivable then 'yes' else 'no' end",
	store.ByReview:      "case when l.needs_review then 'yes' else 'no' end",
	store.ByAttempts:    "l.attempts::text",
}

// saidLater are the groupings whose texts are costly to say: groups l are made by columns, and only
// then said.
var saidLater = map[store.GroupBy]struct{ columns, said, join string }{
	store.ByQueue:     {"l.queue", "q.name", ofQueue},
	store.ByHour:      {"l.hour", hourName, ""},
	store.ByQueueHour: {"l.hour, l.queue", hourName + " || ' ' || q.name", ofQueue},
	store.ByLabel: {"l.fingerprint, l.reason, l.type, l.signature",
		`l.fingerprint || e'\n' || l.reason || e'\n' || l.type || e'\n' || l.signature`, ""},
}

// said are the properties that may have about as many values as there are rows of table death, for
// which the server needs three times as long to sum them up as to send them.
var said = map[store.GroupBy]string{store.ByFingerprint: groupings[store.ByFingerprint], store.ByLabel: saidLater[store.ByLabel].said}

const ofQueue = " join @.queue q on q.n = l.queue"

// Count implements store.DeadLetters. It always counts all letters: from table death where it can,
// with three letters of each facet where groups are described.
func (s *Store) Count(ctx context.Context, filter nixie.Filter, of store.Counting) ([][]store.Group, store.Coverage, error) {
	if err := of.Check(); err != nil {
		return nil, store.Coverage{}, err
	}
	lists := make([][]store.Group, len(of.By))
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		if of.Retrying {
			return t.countRetrying(lists, &filter, of.By)
		}
		a := t.ask(&filter)
		if !of.Described {
			return t.sizes(lists, &a, of.By)
		}
		for i, by := range of.By {
			sums := grouped{}
			t.read(sums.add, a.groups(by), a.args...)
			if err := t.send(); err != nil {
				return err
			}
			lists[i] = sums.list(by)
		}
		return nil
	})
	return lists, store.Coverage{}, err
}

// sizes counts letters by each property.
func (t *tx) sizes(lists [][]store.Group, a *asking, by []store.GroupBy) error {
	for i, g := range by {
		if many := said[g]; many != "" && a.counted() && a.interval.always() {
			t.readSums(&lists[i], fmt.Sprintf("select %s, l.letters from %s where %s", many, a.source(g), a.where), a.args)
			continue
		}
		columns, later := groupings[g]+" as said", saidLater[g]
		if later.said != "" {
			columns = later.columns
		}
		t.readSizes(&lists[i], fmt.Sprintf("select %s, l.letters, 0 from (%s) l%s", cmp.Or(later.said, "l.said"),
			fmt.Sprintf("select %s, sum(letters)::bigint as letters from %s where %s group by %s having sum(letters) > 0",
				columns, a.source(g), a.where, cmp.Or(later.columns, "1")), later.join), a.args)
	}
	return t.sendSizes(lists)
}

// retryings has the properties of current c that messages which still retry are counted by.
var retryings = map[store.GroupBy]string{store.ByAttempts: "c.attempts::text", store.ByReason: "c.reason", store.ByType: "c.type",
	store.ByQueue: "c.queue_name"}

// countRetrying counts messages that still retry by each property.
func (t *tx) countRetrying(lists [][]store.Group, f *nixie.Filter, by []store.GroupBy) error {
	w := messageWhere(f, t.now)
	w.add("c.pos = any(array(select pos from @.pending where attempts > 0))") // no other can have failed in this generation
	w.add("c.state in (0, 1) and c.attempts > 0 and c.reason <> ''")
	for i, g := range by {
		t.readSizes(&lists[i], fmt.Sprintf("select %s, count(*), count(*) filter (where c.state = 1) from @.current c where %s group by 1",
			retryings[g], w), w.args)
	}
	return t.sendSizes(lists)
}

// readSizes reads keys, sizes, and how many messages of each are leased.
func (t *tx) readSizes(list *[]store.Group, query string, args []any) {
	*list = []store.Group{}
	t.read(func(r row) error {
		var g store.Group
		err := r.Scan(&g.Key, &g.Count, &g.Leased)
		*list = append(*list, g)
		return err
	}, query, args...)
}

// readSums reads keys and parts of their sizes.
func (t *tx) readSums(list *[]store.Group, query string, args []any) {
	at, sizes := map[string]int{}, []int64(nil)
	var key string
	var n int64
	into := []any{&key, &n}
	t.list = append(t.list, stmt{query: t.store.named(query), args: args, each: func(r row) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		i, known := at[key]
		if !known {
			i = len(sizes)
			at[key], sizes = i, append(sizes, 0)
		}
		sizes[i] += n
		return nil
	}, done: func(string) error {
		*list = make([]store.Group, 0, len(at))
		for key, i := range at {
			*list = append(*list, store.Group{Key: key, Count: sizes[i]})
		}
		return nil
	}})
}

func (t *tx) sendSizes(lists [][]store.Group) error {
	err := t.send()
	for i := range lists {
		lists[i] = slices.DeleteFunc(lists[i], func(g store.Group) bool { return g.Count <= 0 })
		store.SortGroups(lists[i])
	}
	return err
}

// groups returns the query for groups by a property.
func (a *asking) groups(by store.GroupBy) string {
	examples := strconv.Itoa(store.Examples)
	if !a.counted() {
		return fill("letter_groups.sql", "key", groupings[by], "letters", a.letters, "where", a.where, "examples", examples)
	}
	part, letters := "0", a.interval.within("x.died")
	if by == store.ByHour {
		part, letters = "l.hour", letters+fmt.Sprintf(" and x.died between k.part * %d and k.part * %[1]d + %d", hour, hour-1)
	}
	return fill("death_groups.sql", "key", groupings[by], "deaths", a.source(by), "where", a.where, "hour", part, "within", letters,
		"examples", examples)
}

// grouped has groups by their keys.
type grouped map[string]*groupSum

// groupSum is a group while its letters are read.
type groupSum struct {
	store.Group
	first  int64
	newest []groupMember // latest death first
}

type groupMember struct {
	died, pos int64
	id        nixie.ID
	signature string
	reason    nixie.Reason
}

// add reads a letter of a group, and how many more the group has.
func (g grouped) add(r row) error {
	var key string
	var n int64
	var m groupMember
	if err := r.Scan(&key, &n, &m.died, &m.pos, (*idColumn)(&m.id), &m.signature, &m.reason); err != nil {
		return err
	}
	s := g[key]
	if s == nil {
		s = &groupSum{Group: store.Group{Key: key}, first: m.died}
		g[key] = s
	}
	s.Count += n
	s.first = min(s.first, m.died)
	at, there := slices.BinarySearchFunc(s.newest, m, func(a, b groupMember) int {
		return cmp.Or(cmp.Compare(b.died, a.died), cmp.Compare(b.pos, a.pos))
	})
	if !there {
		s.newest = slices.Insert(s.newest, at, m)
		s.newest = s.newest[:min(len(s.newest), store.Examples)]
	}
	return nil
}

func (g grouped) list(by store.GroupBy) []store.Group {
	list := make([]store.Group, 0, len(g))
	for _, s := range g {
		s.FirstAt, s.LastAt = lifecycle.Moment(s.first), lifecycle.Moment(s.newest[0].died)
		if by == store.ByFingerprint {
			s.Label, s.Reason = s.newest[0].signature, s.newest[0].reason
		}
		s.Examples = eachOf(s.newest, func(m groupMember) nixie.ID { return m.id })
		list = append(list, s.Group)
	}
	store.SortGroups(list)
	return list
}
