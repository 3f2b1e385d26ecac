package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

func open(t testing.TB, path string, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "store.db")
	}
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func fill(t testing.TB, s *sqlite.Store, queue string, n int) {
	t.Helper()
	const per = 1000
	for lo := 0; lo < n; lo += per {
		ms := make([]nixie.Message, 0, per)
		for i := lo; i < min(n, lo+per); i++ {
			ms = append(ms, nixie.Message{Queue: queue, Body: fmt.Appendf(nil, `{"n":%d,"pad":"%0180d"}`, i, i)})
		}
		if _, err := s.Enqueue(context.Background(), ms...); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkDrain measures the cost of a batch row: claim 1000, complete 1000. The claim of the next
// batch commits together with the settlements before it.
func BenchmarkDrain(b *testing.B) {
	s := open(b, "", sqlite.Options{})
	ctx := context.Background()
	b.StopTimer()
	start := time.Now()
	fill(b, s, "q", b.N)
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "enqueue/s")
	b.StartTimer()
	got, err := s.Claim(ctx, "q", nixie.Want{Max: 1000})
	for done := 0; done < b.N; {
		if err != nil || len(got) == 0 {
			b.Fatal(done, err)
		}
		st := make([]nixie.Settlement, len(got))
		for i, d := range got {
			st[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		next := make(chan []*nixie.Delivery, 1)
		go func() {
			ds, err := s.Claim(ctx, "q", nixie.Want{Max: 1000})
			if err != nil {
				b.Error(err)
			}
			next <- ds
		}()
		for _, err := range s.Settle(ctx, st) {
			if err != nil {
				b.Fatal(err)
			}
		}
		done += len(got)
		got = <-next
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "drain/s")
}
