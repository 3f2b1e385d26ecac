package sqlite

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// sizesOf counts letters by several properties. It reads each facet once for all properties, and no
// letter for an example.
func sizesOf(p *picker, of store.Counting) (lists [][]store.Group, covered store.Coverage, err error) {
	n := newSizing(of.By)
	if p.counted() {
		err = n.counted(p)
	} else {
		covered, err = n.each(p, of.Scan)
	}
	names := map[string]string{}
	if err == nil && strings.Contains(n.columns, "f.queue") {
		err = p.c.each("select n, name from queue", func(row rows) error {
			names[strconv.FormatInt(row.ColumnInt64(0), 10)] = row.ColumnText(1)
			return nil
		})
	}
	for _, t := range n.by {
		lists = append(lists, t.groups(names))
	}
	return lists, covered, err
}

// sizing counts letters by several properties.
type sizing struct {
	by      []*tally
	columns string // to follow others
}

// tally counts letters by a property. Very many facets may have as many values, or a few: each is
// kept once, and a row that has the value of the row before it costs least.
type tally struct {
	property     store.GroupBy
	first, after int // its columns among those of the sizing
	hourly       bool
	values       []string
	seed         maphash.Seed
	hashes       []uint64         // of each value
	slots        []int32          // values by their hashes, plus 1; as many as a power of two
	last         int              // the value of the row before
	scratch      []byte           // the value of a row
	letters      []int64          // of each value, unless hourly
	hours        map[hourOf]int64 // of each value
}

// hourOf is an hour of death, and the number of a value.
type hourOf struct {
	hour  int64
	value int
}

// separately are the columns of properties whose texts Go makes: SQLite needs longer for them.
var separately = map[store.GroupBy][]string{
	store.ByQueue:     {"f.queue"},
	store.ByQueueHour: {"f.queue"},
	store.ByLabel:     {"f.fingerprint", "f.reason", "f.type", "f.signature"},
}

func newSizing(by []store.GroupBy) *sizing {
	n, columns := &sizing{}, 0
	for _, property := range by {
		t := &tally{property: property, first: columns, last: -1, seed: maphash.MakeSeed()}
		if t.hourly = property == store.ByHour || property == store.ByQueueHour; t.hourly {
			t.hours = map[hourOf]int64{}
		}
		list := separately[property]
		if list == nil {
			list = []string{groupings[property]}
		}
		columns += len(list)
		t.after = columns
		n.columns += ", " + strings.Join(list, ", ")
		n.by = append(n.by, t)
	}
	return n
}

// value returns the number of the value that a row has, whose columns begin behind some others.
func (t *tally) value(row rows, behind int) int {
	t.scratch = t.scratch[:0]
	for i := t.first; i < t.after; i++ {
		if i > t.first {
			t.scratch = append(t.scratch, '\n')
		}
		size := row.ColumnLen(behind + i)
		t.scratch = slices.Grow(t.scratch, size)
		end := len(t.scratch)
		t.scratch = t.scratch[:end+size]
		row.ColumnBytes(behind+i, t.scratch[end:])
	}
	if t.last >= 0 && t.values[t.last] == string(t.scratch) {
		return t.last
	}
	t.last = t.known()
	return t.last
}

// known returns the number of the value at hand. It costs half of what a map does where each row
// has a value of its own.
func (t *tally) known() int {
	if 2*len(t.values) >= len(t.slots) {
		t.slots = make([]int32, max(64, 4*len(t.slots)))
		for i, h := range t.hashes {
			t.slots[t.slot(h, func(int) bool { return false })] = int32(i + 1)
		}
	}
	h := maphash.Bytes(t.seed, t.scratch)
	at := t.slot(h, func(value int) bool { return t.hashes[value] == h && t.values[value] == string(t.scratch) })
	if t.slots[at] == 0 {
		t.values, t.hashes, t.letters = append(t.values, string(t.scratch)), append(t.hashes, h), append(t.letters, 0)
		t.slots[at] = int32(len(t.values))
	}
	return int(t.slots[at] - 1)
}

// slot returns where a value with a hash is, or has to be.
func (t *tally) slot(h uint64, is func(value int) bool) int {
	last := len(t.slots) - 1
	at := int(h) & last
	for t.slots[at] != 0 && !is(int(t.slots[at]-1)) {
		at = (at + 1) & last
	}
	return at
}

// groups lists the values that letters have. Queues are known by their numbers.
func (t *tally) groups(queues map[string]string) []store.Group {
	if queue := t.property == store.ByQueue || t.property == store.ByQueueHour; queue {
		for i, n := range t.values {
			t.values[i] = queues[n]
		}
	}
	list := make([]store.Group, 0, cmp.Or(len(t.hours), len(t.values)))
	for at, n := range t.hours {
		g := store.Group{Key: hourName(at.hour), Count: n}
		if t.property == store.ByQueueHour {
			g.Key += " " + t.values[at.value]
		}
		list = append(list, g)
	}
	for i, n := range t.letters {
		if n > 0 {
			list = append(list, store.Group{Key: t.values[i], Count: n})
		}
	}
	store.SortGroups(list)
	return list
}

// counted sums up facets. The filter asks only for their properties and the time of death.
func (n *sizing) counted(p *picker) error {
	facets := facetList{}
	var letters []int64 // of the facets
	var values []int    // of each, one for each property
	if err := p.c.each("select f.n, f.letters"+n.columns+" from facet f where "+p.facets.String(), func(row rows) error {
		facets.add(row.ColumnInt64(0))
		letters = append(letters, row.ColumnInt64(1))
		for _, t := range n.by {
			values = append(values, t.value(row, 2))
		}
		return nil
	}, p.facets.args...); err != nil {
		return err
	}
	if p.interval != allTime() || slices.ContainsFunc(n.by, func(t *tally) bool { return t.hourly }) {
		clear(letters)
		if err := eachDeathOf(p.c, p.facets, facets.len(), p.interval, func(facet, hour, died int64) {
			f := facets.find(facet)
			if f < 0 {
				return
			}
			letters[f] += died
			for i, t := range n.by {
				if t.hourly {
					t.hours[hourOf{hour, values[f*len(n.by)+i]}] += died
				}
			}
		}); err != nil {
			return err
		}
	}
	for f, died := range letters {
		for i, t := range n.by {
			if !t.hourly {
				t.letters[values[f*len(n.by)+i]] += died
			}
		}
	}
	return nil
}

// each scans matching letters, latest death first, and returns how many it scanned if those were
// not all.
func (n *sizing) each(p *picker, scan store.Scan) (store.Coverage, error) {
	return p.through("l.died"+n.columns, scan, func(row rows) error {
		for _, t := range n.by {
			if at := t.value(row, 1); t.hourly {
				t.hours[hourOf{lifecycle.Hour(row.ColumnInt64(0)), at}]++
			} else {
				t.letters[at]++
			}
		}
		return nil
	})
}

// facetList finds facets by their numbers. Most are added and looked for in their order.
type facetList struct {
	numbers []int64
	at      map[int64]int // if they were not added in their order
	next    int           // where the one is that is looked for next, if that is in order
}

func (l *facetList) len() int { return len(l.numbers) }

func (l *facetList) add(n int64) {
	last := len(l.numbers) - 1
	if l.numbers = append(l.numbers, n); l.at != nil {
		l.at[n] = last + 1
	} else if last >= 0 && l.numbers[last] > n {
		l.at = map[int64]int{}
		for i, n := range l.numbers {
			l.at[n] = i
		}
	}
}

// find returns where a facet is, or −1.
func (l *facetList) find(n int64) int {
	at, found := l.next, l.next < len(l.numbers) && l.numbers[l.next] == n
	switch {
	case found:
	case l.next > 0 && l.numbers[l.next-1] == n:
		return l.next - 1
	case l.at != nil:
		at, found = l.at[n]
	default:
		at, found = slices.BinarySearch(l.numbers, n)
	}
	if !found {
		return -1
	}
	l.next = at + 1
	return at
}
