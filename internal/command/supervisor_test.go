//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"errors"
	"testing"
)

// A scan of the process list can miss a process that starts meanwhile. Only several empty scans in
// a row prove that none is left.
func TestOneEmptyScanIsNotTheEnd(t *testing.T) {
	seen := []int{2, 0, 1, 0, 0, 1, 0, 0, 0}
	scans := 0
	err := untilGone(func() (int, error) {
		scans++
		return seen[scans-1], nil
	})
	if err != nil || scans != len(seen) {
		t.Errorf("%d scans, %v; want %d", scans, err, len(seen))
	}
	broken := errors.New("no list")
	if err := untilGone(func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
