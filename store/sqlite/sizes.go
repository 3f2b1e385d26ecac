package sqlite

import (
	"slices"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// sizesOf counts letters by several properties. It reads each facet once for all properties, and no
// letter for an example.
func sizesOf(p *picker, of store.Counting) (lists [][]store.Group, covered store.Coverage, err error) {
	n := &sizing{by: of.By, hour: slices.Index(of.By, store.ByHour), counts: make([]map[string]int64, len(of.By))}
	for i := range n.counts {
		n.counts[i] = map[string]int64{}
	}
	if p.counted() {
		err = n.counted(p)
	} else {
		covered, err = n.each(p, of.Scan)
	}
	for _, sizes := range n.counts {
		lists = append(lists, store.GroupsOf(sizes))
	}
	return lists, covered, err
}

// sizing counts letters by several properties.
type sizing struct {
	by     []store.GroupBy
	hour   int // index of the hour of death in by; −1 is none
	counts []map[string]int64
}

// add counts letters. The row has a key for each property, from its second column on. It skips the
// hour.
func (n *sizing) add(row rows, letters int64) {
	for i := range n.by {
		if i != n.hour {
			n.counts[i][row.ColumnText(1+i)] += letters
		}
	}
}

// counted sums up facets. The filter asks only for their properties and the time of death.
func (n *sizing) counted(p *picker) error {
	bounded := p.interval != allTime()
	letters := map[int64]int64{} // within the times of death, by facet
	if bounded || n.hour >= 0 {
		hours := map[int64]int64{}
		if err := eachDeath(p.c, p.facets, p.interval, func(facet, hour, died int64) {
			letters[facet] += died
			hours[hour] += died
		}); err != nil {
			return err
		}
		if n.hour >= 0 {
			for h, died := range hours {
				n.counts[n.hour][hourName(h)] = died
			}
		}
	}
	return p.c.each("select f.n"+n.columns()+", f.letters from facet f where "+p.facets.String(), func(row rows) error {
		died := row.ColumnInt64(1 + len(n.by))
		if bounded {
			died = letters[row.ColumnInt64(0)]
		}
		if died > 0 {
			n.add(row, died)
		}
		return nil
	}, p.facets.args...)
}

// each scans matching letters, latest death first, and returns how many it scanned if those were
// not all.
func (n *sizing) each(p *picker, scan store.Scan) (store.Coverage, error) {
	return p.through("l.died"+n.columns(), scan, func(row rows) error {
		if n.hour >= 0 {
			n.counts[n.hour][hourName(lifecycle.Hour(row.ColumnInt64(0)))]++
		}
		n.add(row, 1)
		return nil
	})
}

// columns returns the columns of all keys, to follow another column.
func (n *sizing) columns() string {
	list := ""
	for _, by := range n.by {
		list += ", " + groupings[by]
	}
	return list
}
