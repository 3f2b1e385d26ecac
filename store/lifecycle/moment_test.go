package lifecycle_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie/store/lifecycle"
)

func TestHour(t *testing.T) {
	const hour = int64(time.Hour)
	for at, want := range map[int64]int64{0: 0, 1: 0, hour - 1: 0, hour: 1, -1: -1, -hour: -1, -hour - 1: -2} {
		if got := lifecycle.Hour(at); got != want {
			t.Errorf("%d ns are in hour %d, want %d", at, got, want)
		}
	}
}
