package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// R52: a drain ends within 100 ms of its last item, on every store. The quickest of some drains
// tells: a machine may be busy, and a worker that waits for more work is never quick.
func TestR52_DrainsEndSoon(t *testing.T) {
	const drains, bound = 10, 100 * time.Millisecond
	test := func(t *testing.T, st loop.Store) {
		requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
		least := time.Hour
		for range drains {
			for _, text := range []string{"a", "b", "c"} {
				must(requests.Send(ctx, request{Request: text}))(t)
			}
			var last time.Time
			l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
				Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet, Until: worker.Until{Idle: true}},
				Execute: func(context.Context, request) (float64, error) {
					defer func() { last = time.Now() }()
					return 1, nil
				},
			}))(t)
			if err := l.Run(ctx); err != nil {
				t.Fatal(err)
			}
			least = min(least, time.Since(last))
			if n := must(requests.ApproximateCount(ctx))(t); n != 0 {
				t.Fatalf("%d requests are left", n)
			}
		}
		if t.Logf("%s after the last item", least.Round(100*time.Microsecond)); least > bound {
			t.Errorf("the end came %s after the last item, want at most %s", least, bound)
		}
	}
	t.Run("memory", func(t *testing.T) { test(t, memory.New(memory.Options{})) })
	t.Run("sqlite", func(t *testing.T) {
		st := must(sqlite.Open(t.TempDir()+"/nixie.db", sqlite.Options{}))(t)
		defer func() { _ = st.Close() }()
		test(t, st)
	})
	t.Run("postgres", func(t *testing.T) {
		st := must(postgres.Open(ctx, testservers.OwnPostgres(t).URL, postgres.Options{}))(t)
		defer func() { _ = st.Close() }()
		test(t, st)
	})
}
