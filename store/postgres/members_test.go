package postgres_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
)

// TestMembersComeInTheirOrder reads the messages of two batches, the second of which lies
// before the first, also by a plan that finds batches as they lie: the messages come in the
// order of the ranges, on which the reader relies.
func TestMembersComeInTheirOrder(t *testing.T) {
	const each = 100
	ctx := t.Context()
	list, schema := crowd(t, 1)
	ms := make([]nixie.Message, 2*each)
	for i := range ms {
		ms[i].Queue = "q"
	}
	_, err := list[0].Enqueue(ctx, ms...)
	must(t, err)
	conn, err := pgx.Connect(ctx, server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(ctx)) }()
	positions := func(query string, args ...any) (all []int64) {
		t.Helper()
		rows, err := conn.Query(ctx, query, args...)
		must(t, err)
		for rows.Next() {
			var pos int64
			must(t, rows.Scan(append([]any{nil, &pos}, make([]any, len(rows.FieldDescriptions())-2)...)...))
			all = append(all, pos)
		}
		must(t, rows.Err())
		return all
	}
	want := positions("select tx, pos from " + schema + ".message order by tx, pos")
	for n := 2; n > 0; n-- {
		_, err := conn.Exec(ctx, `insert into `+schema+`.batch (n, queue, owner,
			after_tx, after, last_tx, last, members, remains, claimed, until)
			select $1, queue, 1, tx, $2, tx, $3, $4, $4, 0, 0 from `+schema+`.message
				where pos = $3`, n, want[(n-1)*each]-1, want[n*each-1], each)
		must(t, err)
	}
	for _, by := range []string{"on", "off"} {
		_, err := conn.Exec(ctx, "select set_config('enable_indexscan', $1, false), set_config('enable_seqscan', 'off', false)", by)
		must(t, err)
		if got := positions(list[0].Members(), 0, 2); !slices.Equal(got, want) {
			t.Errorf("with enable_indexscan %s messages come as %v, want %v", by, got, want)
		}
	}
}
