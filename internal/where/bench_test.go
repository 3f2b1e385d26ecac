package where_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/where"
)

// BenchmarkMatches evaluates expressions for items of a usual size.
func BenchmarkMatches(b *testing.B) {
	const order = `{"id": "o-10017", "order": 1234567890123456789, "customer": {"id": 52817, "tier": "gold", "since": "2021-04-01"}, ` +
		`"total": 1079.90, "currency": "EUR", "weight": 0.45, "priority": 7, "tags": ["go", "eu", 5], "express": true, "lines": [` +
		`{"sku": "A-1", "n": 2, "price": 19.95}, {"sku": "B-77", "n": 1, "price": 1040.00}]}`
	for _, c := range []struct{ name, text, body string }{
		{"number", `item.priority > 5`, order},
		{"numbers", `item.total >= 1079.9 && item.customer.id == 52817 && item.lines[1].price < 2000`, order},
		{"list", `item.priority in [1, 2, 3, 4, 5, 6, 7.0]`, order},
		{"texts", `item.customer.tier == "gold" && item.currency in ["EUR", "USD"]`, order},
		{"csv", `item.total > 1000 && item.priority < 10`, `{"id": "o-1", "total": "1079.90", "priority": "7", "express": "yes"}`},
		{"small", `item.n == 1`, `{"n": 1}`},
		{"facts", `failure_count < 3 && error_signature == "exit 4"`, order},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := where.Parse(c.text)
			if err != nil {
				b.Fatal(err)
			}
			l := letter(c.body)
			if !e.Matches(l) {
				b.Fatal("it does not hold")
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Matches(l)
			}
		})
	}
}
