package sqlite

import (
	"slices"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// sizesOf counts letters by several properties. It reads each facet once for all properties, and no
// letter for an example.
func sizesOf(p *picker, of store.Counting) (lists [][]store.Group, covered store.Coverage, err error) {
	n := &sizing{by: of.By, hourly: make([]bool, len(of.By)), counts: make([]map[sizeKey]int64, len(of.By))}
	for i, by := range of.By {
		n.hourly[i], n.counts[i] = by == store.ByHour || by == store.ByQueueHour, map[sizeKey]int64{}
	}
	if p.counted() {
		err = n.counted(p)
	} else {
		covered, err = n.each(p, of.Scan)
	}
	for i := range n.counts {
		lists = append(lists, n.groups(i))
	}
	return lists, covered, err
}

// sizing counts letters by several properties.
type sizing struct {
	by     []store.GroupBy
	hourly []bool // the hour of death is a part of the property
	counts []map[sizeKey]int64
}

// sizeKey is the key of a group: its text in table facet, with the hour of death if that is a part
// of the property.
type sizeKey struct {
	hour int64
	text string
}

// counted sums up facets. The filter asks only for their properties and the time of death.
func (n *sizing) counted(p *picker) error {
	texts, letters := map[int64][]string{}, map[int64]int64{} // by facet
	if err := p.c.each("select f.n"+n.columns()+", f.letters from facet f where "+p.facets.String(), func(row rows) error {
		facet, list := row.ColumnInt64(0), make([]string, len(n.by))
		for i := range list {
			list[i] = row.ColumnText(1 + i)
		}
		texts[facet], letters[facet] = list, row.ColumnInt64(1+len(list))
		return nil
	}, p.facets.args...); err != nil {
		return err
	}
	if p.interval != allTime() || slices.Contains(n.hourly, true) {
		clear(letters)
		if err := eachDeath(p.c, p.facets, p.interval, func(facet, hour, died int64) {
			letters[facet] += died
			for i, text := range texts[facet] {
				if n.hourly[i] {
					n.counts[i][sizeKey{hour, text}] += died
				}
			}
		}); err != nil {
			return err
		}
	}
	for facet, died := range letters {
		for i, text := range texts[facet] {
			if !n.hourly[i] && died > 0 {
				n.counts[i][sizeKey{text: text}] += died
			}
		}
	}
	return nil
}

// each scans matching letters, latest death first, and returns how many it scanned if those were
// not all.
func (n *sizing) each(p *picker, scan store.Scan) (store.Coverage, error) {
	return p.through("l.died"+n.columns(), scan, func(row rows) error {
		for i, hourly := range n.hourly {
			key := sizeKey{text: row.ColumnText(1 + i)}
			if hourly {
				key.hour = lifecycle.Hour(row.ColumnInt64(0))
			}
			n.counts[i][key]++
		}
		return nil
	})
}

// columns returns the columns of all texts, to follow another column.
func (n *sizing) columns() string {
	list := ""
	for _, by := range n.by {
		list += ", " + groupings[by]
	}
	return list
}

// groups returns the groups by the i-th property.
func (n *sizing) groups(i int) []store.Group {
	list := make([]store.Group, 0, len(n.counts[i]))
	for key, died := range n.counts[i] {
		g := store.Group{Key: key.text, Count: died}
		switch n.by[i] {
		case store.ByHour:
			g.Key = hourName(key.hour)
		case store.ByQueueHour:
			g.Key = hourName(key.hour) + " " + key.text
		}
		list = append(list, g)
	}
	store.SortGroups(list)
	return list
}
