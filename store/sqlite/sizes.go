package sqlite

import (
	"slices"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// sizesOf counts letters by several properties. Each facet is asked once for all that is
// counted, and no letter is read for an example.
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
	hour   int // which of them is the hour of death; −1 is none
	counts []map[string]int64
}

// add counts letters whose keys are columns of a row, each after the first one. Hours
// are not among them.
func (n *sizing) add(row rows, letters int64) {
	for i := range n.by {
		if i != n.hour {
			n.counts[i][row.ColumnText(1+i)] += letters
		}
	}
}

// counted sums up what facets and times of death say all of.
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

// each goes through letters that match, latest death first, and says how many were
// looked at if those were not all.
func (n *sizing) each(p *picker, scan store.Scan) (store.Coverage, error) {
	return p.through("l.died"+n.columns(), scan, func(row rows) error {
		if n.hour >= 0 {
			n.counts[n.hour][hourName(lifecycle.Hour(row.ColumnInt64(0)))]++
		}
		n.add(row, 1)
		return nil
	})
}

// columns names the key of each property, to stand after another column.
func (n *sizing) columns() string {
	list := ""
	for _, by := range n.by {
		list += ", " + groupings[by]
	}
	return list
}
