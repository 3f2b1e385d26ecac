package foreign

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Texts that inflate to far more than they have make small pages, and every job comes: what is
// beyond the limit of one text is left out, and the letter says so.
func TestBombs(t *testing.T) {
	inBase64 := base64.StdEncoding.EncodeToString([]byte(bomb))
	lines := packed(`["` + strings.Repeat("x", maxInflated-100) + `"]`)
	trace := deflated(strings.Repeat("x", maxInflated-10) + "\n")
	for name, tc := range map[string]struct {
		format string
		most   int // jobs of a page
		put    func(id string) [][]any
		stack  string // ends that of each job; empty: what fits has no end
	}{
		"sidekiq": {"sidekiq", 16, func(id string) [][]any {
			return [][]any{{"ZADD", "dead", "1700000000", `{"jid":"` + id + `","queue":"q","error_backtrace":"` + lines + `"}`}}
		}, ""},
		"sidekiq, beyond one text": {"sidekiq", 15, func(id string) [][]any {
			return [][]any{{"ZADD", "dead", "1700000000", `{"jid":"` + id + `","queue":"q","error_backtrace":"` + inBase64 + `"}`}}
		}, tooLong},
		"rq": {"rq", 1, func(id string) [][]any {
			all := [][]any{{"ZADD", "rq:failed:q", "1700000000", id}, {"HSET", "rq:job:" + id, "data", "d", "exc_info", trace}}
			for n := range maxLines {
				all = append(all, []any{"XADD", "rq:results:" + id, fmt.Sprint(1700000000000+n, "-0"), "type", "2", "exc_string", inBase64})
			}
			return all
		}, tooLong},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := database(t)
			const jobs = 40
			for n := range jobs {
				run(t, c, tc.put(fmt.Sprint("id", n)))
			}
			r, err := Open(t.Context(), another(c), Config{Format: tc.format})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			seen, held := map[string]bool{}, uint64(0)
			for {
				page, err := r.Next(t.Context(), 1000)
				if err != nil || len(page) > tc.most {
					t.Fatalf("a page of %d jobs: %v", len(page), err)
				}
				if len(page) == 0 {
					break
				}
				for i := range page {
					seen[page[i].MessageID] = true
					if text := fmt.Sprintf("%s", page[i].Headers); !strings.Contains(text, tc.stack) {
						t.Errorf("job %s does not tell %s", page[i].MessageID, tc.stack)
					}
				}
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				if held = max(held, m.HeapAlloc); held > 128<<20 {
					t.Fatalf("%d MiB are held after %d jobs", held>>20, len(seen))
				}
			}
			if len(seen) != jobs {
				t.Errorf("%d jobs came of %d", len(seen), jobs)
			}
			t.Logf("%d jobs, %d MiB held", len(seen), held>>20)
		})
	}
}
