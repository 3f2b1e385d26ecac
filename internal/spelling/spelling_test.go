package spelling

import (
	"strings"
	"testing"
)

func TestSlips(t *testing.T) {
	for _, c := range []struct {
		word, name string
		want       int
	}{
		{"reason", "reason", 0}, {"reson", "reason", 1}, {"reasson", "reason", 1}, {"reazon", "reason", 1}, {"raeson", "reason", 1},
		{"", "reason", 6}, {"reason", "", 6}, {"queue", "reason", 6}, {strings.Repeat("x", 1<<20), "x", 99},
	} {
		if got := Slips(c.word, c.name); got != c.want {
			t.Errorf("%.20q is %d slips from %q, want %d", c.word, got, c.name, c.want)
		}
	}
	if got := Nearest("filtr", []string{"map", "filter", "reduce"}); got != "filter" {
		t.Errorf("nearest is %q", got)
	}
}
