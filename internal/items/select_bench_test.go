package items_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/items"
)

// BenchmarkSelect sorts 20,000 items by a number and takes the first of each value.
func BenchmarkSelect(b *testing.B) {
	const n = 20_000
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, `{"id":"o-%d","order":%d,"total":%d.%02d,"customer":{"tier":"gold"}}`+"\n", i, 7_919*i%n, i%1_000, i%100)
	}
	for name, choice := range map[string]items.Selection{
		"sort":     {Sort: []items.SortKey{{Path: "order"}}},
		"distinct": {Distinct: "total"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				from := strings.NewReader(list.String())
				r, err := items.Open(items.Options{Path: "-", Stdin: from, Format: items.JSONL, Select: &choice})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Next()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/item")
		})
	}
}
