//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"errors"
	"testing"
)

// A look at the list of processes can miss one that starts meanwhile: only
// several empty ones in a row say that nothing is left.
func TestOneEmptyLookIsNotTheEnd(t *testing.T) {
	seen := []int{2, 0, 1, 0, 0, 1, 0, 0, 0}
	looks := 0
	err := untilCalm(func() (int, error) {
		looks++
		return seen[looks-1], nil
	})
	if err != nil || looks != len(seen) {
		t.Errorf("%d looks, %v; want %d", looks, err, len(seen))
	}
	broken := errors.New("no list")
	if err := untilCalm(func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
