package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestMain makes the test binary one of the processes that tests kill and stop when
// it is started as one: role, store, seed.
func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		os.Exit(child.Code(play(args[0], args[1], args[2])))
	}
	os.Exit(m.Run())
}

// childProcess is the inside of such a process.
type childProcess struct {
	child.Voice
	s *sqlite.Store
}

// play plays a role until the process is killed or the role is over.
func play(role, path, seed string) error {
	n, err := strconv.ParseInt(seed, 10, 64)
	if err != nil {
		return err
	}
	c := &childProcess{}
	opts := sqlite.Options{Reserve: -1}
	if role == "prune" {
		if opts.Clock, err = fastClock(path); err != nil {
			return err
		}
	}
	if role == "reopen" {
		c.Say("opening")
	}
	s, err := sqlite.Open(path, opts)
	if err != nil {
		return err
	}
	c.s = s
	switch role {
	case "work", "reopen":
		err = c.work(n, 0, nil)
	case "redrive":
		err = c.work(n, 3, (*processWork).redriveTheDead)
	case "prune":
		err = c.work(n, 3, (*processWork).prune)
	case "checkpoint":
		err = c.work(n, 4, (*processWork).checkpoint)
	case "hold":
		err = c.Hold(s, time.Duration(n)*time.Millisecond)
	case "outbox":
		err = c.outbox()
	case "effects":
		err = c.effects()
	case "drain":
		err = c.drain(int(n))
	default:
		err = fmt.Errorf("no role %q", role)
	}
	return errors.Join(err, s.Close())
}

func startChild(t *testing.T, role, path string, seed int64) *child.Process {
	t.Helper()
	return child.Start(t, role, path, fmt.Sprint(seed))
}
