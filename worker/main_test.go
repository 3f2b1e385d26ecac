package worker_test

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives the tests one processor under the race detector of Go 1.26. On two processors two
// timers of a bubble can fire at once and share one state of the detector, which then crashes
// (SIGSEGV in SlotLock). With one it still sees each pair of accesses that nothing orders. Without
// the detector the tests run on all processors.
func TestMain(m *testing.M) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		runtime.GOMAXPROCS(1)
	}
	goleak.VerifyTestMain(m)
}
