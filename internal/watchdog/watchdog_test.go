package watchdog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie/internal/watchdog"
)

// A process that was stopped, and goes on, is not ended for the silence of that time: its parts
// have the threshold again to be heard.
func TestAStoppedProcess(t *testing.T) {
	for name, stopped := range map[string]time.Duration{"runs": 0, "was stopped": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log, stacks bytes.Buffer
				begun, looks, killed := time.Now(), 0, time.Duration(0)
				w := watchdog.Watchdog{
					Threshold: 12 * time.Second, Interval: time.Second, Dump: &stacks, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Silent: func() []string {
						if looks++; looks == 1 {
							time.Sleep(stopped)
							return nil
						}
						return []string{"a part"}
					},
					Kill: func() { killed = time.Since(begun) },
				}
				w.Watch(t.Context())
				least := 2 * time.Second
				if stopped > 0 {
					least = time.Second + stopped + w.Threshold
				}
				if killed < least || killed > least+2*w.Interval {
					t.Errorf("killed after %s, want %s", killed, least)
				}
				if !strings.Contains(log.String(), "level=ERROR+4") || !strings.Contains(log.String(), "a part") ||
					!strings.Contains(stacks.String(), "TestAStoppedProcess") {
					t.Errorf("last words %q and %q", log.String(), stacks.String())
				}
			})
		})
	}
}
