package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Calls that fail, and callers that leave, take no file with them.
func TestB055_FailingCallsLeakNothing(t *testing.T) {
	const folder = "/proc/self/fd"
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	fill(t, s, "q", 10)
	theirs := filepath.Join(filepath.Dir(s.Path()), "theirs.db")
	script(t, theirs, "create table theirs (x)")
	fail := func() {
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := s.Enqueue(gone, nixie.Message{Queue: "q"})
		_, _, read := s.Messages(t.Context(), nixie.Filter{}, store.Page{Cursor: "no cursor"})
		_, claim := s.Claim(gone, "q", nixie.Want{Max: 1})
		_, other := sqlite.Open(theirs, sqlite.Options{})
		for _, err := range []error{err, read, claim, other} {
			if err == nil {
				t.Fatal("a call that cannot work worked")
			}
		}
	}
	count := func() int {
		files, err := os.ReadDir(folder)
		must(t, err)
		return len(files)
	}
	fail()
	before := count()
	for range 200 {
		fail()
	}
	if after := count(); after > before+4 { // the pool of readers may have grown
		t.Errorf("%d files are open, %d were before 200 failing calls", after, before)
	}
	fill(t, s, "q", 1)
}
