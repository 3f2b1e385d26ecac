package faultdisk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/faultdisk"
)

// losses counts what verify found over the images of a crash run.
type losses struct {
	mu            sync.Mutex
	lost, damaged int
	first         error
}

func (l *losses) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		return
	case errors.Is(err, errLost):
		l.lost++
	default:
		l.damaged++
	}
	if l.first == nil {
		l.first = err
	}
}

// survey runs a ledger and counts what is lost over all crashes.
func survey(t *testing.T, l ledger, plan faultdisk.Plan) *losses {
	t.Helper()
	disk := faultdisk.New(t, "survey")
	l.run(t, disk, 12)
	found := &losses{}
	tally := faultdisk.EachCrash(t, disk, plan, func(t *testing.T, c faultdisk.Crash) {
		found.add(verify(c.Path(database), c.Acked()))
	})
	t.Logf("%+v: %d changes, %+v; lost %d, damaged %d, first: %v", l, disk.Ops(), tally, found.lost, found.damaged, found.first)
	return found
}

// Safe settings keep every acknowledged entry in every image.
func TestSafeSettingsLoseNothing(t *testing.T) {
	for name, l := range map[string]ledger{
		"wal":      walFull,
		"wal-mmap": {journal: "wal", sync: "full", mmap: true, pages: 8},
		"delete":   {journal: "delete", sync: "extra"},
		"persist":  {journal: "persist", sync: "full"},
		"truncate": {journal: "truncate", sync: "full"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := faultdisk.Plan{}
			if l.journal != "wal" {
				plan.Every = 3
			}
			found := survey(t, l, plan)
			if found.lost+found.damaged > 0 {
				t.Errorf("%d images lost entries, %d are damaged; first: %v", found.lost, found.damaged, found.first)
			}
		})
	}
}

// The harness exists to find weak settings: each of them has to lose something.
func TestWeakSettingsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		ledger
		damages bool
	}{
		"wal-normal":    {ledger: ledger{journal: "wal", sync: "normal", pages: 8}},
		"wal-off":       {ledger: ledger{journal: "wal", sync: "off", pages: 8}, damages: true},
		"delete-full":   {ledger: ledger{journal: "delete", sync: "full"}}, // the journal may come back
		"delete-off":    {ledger: ledger{journal: "delete", sync: "off"}, damages: true},
		"memory-normal": {ledger: ledger{journal: "memory", sync: "full"}, damages: true},
	} {
		t.Run(name, func(t *testing.T) {
			found := survey(t, c.ledger, faultdisk.Plan{Every: 2})
			if found.lost == 0 {
				t.Error("no image lost an acknowledged entry")
			}
			if (found.damaged > 0) != c.damages {
				t.Errorf("%d images are damaged, want damage: %v; first: %v", found.damaged, c.damages, found.first)
			}
		})
	}
}

// The trace explains every byte on the real disk, so nothing escapes it.
func TestTraceExplainsTheFiles(t *testing.T) {
	for _, l := range []ledger{
		walFull,
		{journal: "wal", sync: "off", mmap: true, pages: 1000},
		{journal: "delete", sync: "full", mmap: true},
		{journal: "persist", sync: "full"},
		{journal: "truncate", sync: "full"},
	} {
		t.Run(l.journal, func(t *testing.T) {
			disk := faultdisk.New(t, "trace")
			reader, err := l.open(disk.URI(database)) // keeps the log alive
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, reader)
			l.run(t, disk, 10)
			dir := t.TempDir()
			if _, err := disk.CrashAt(disk.Ops(), faultdisk.All, 0, dir); err != nil {
				t.Fatal(err)
			}
			same(t, disk.Dir(), dir)
		})
	}
}

func same(t *testing.T, real, image string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		want, errWant := os.ReadFile(filepath.Join(real, database+suffix))
		got, errGot := os.ReadFile(filepath.Join(image, database+suffix))
		if (errWant == nil) != (errGot == nil) || !bytes.Equal(want, got) {
			t.Errorf("%s: %d bytes on disk (%v), %d in the image (%v)", database+suffix, len(want), errWant, len(got), errGot)
		}
	}
}

// The connection that makes the log need not be the one that writes to it.
func TestLogMadeByReader(t *testing.T) {
	disk := faultdisk.New(t, "reader")
	walFull.run(t, disk, 2)
	from := disk.Ops()
	reader, err := walFull.open(disk.URI(database))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, reader)
	if _, err := text(reader, "SELECT count(*) FROM entry"); err != nil {
		t.Fatal(err)
	}
	writeSome(t, disk, 50, 3)
	faultdisk.EachCrash(t, disk, faultdisk.Plan{From: from, Seeds: 2}, func(t *testing.T, c faultdisk.Crash) {
		if err := verify(c.Path(database), c.Acked()); err != nil {
			t.Error(err)
		}
	})
}

// Several connections write at once; what each was promised survives.
func TestManyConnections(t *testing.T) {
	disk := faultdisk.New(t, "many")
	walFull.run(t, disk, 0)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() { writeSome(t, disk, w*100+1, 6) })
	}
	writers.Wait()
	tally := faultdisk.EachCrash(t, disk, faultdisk.Plan{}, func(t *testing.T, c faultdisk.Crash) {
		if err := verify(c.Path(database), c.Acked()); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d changes, %+v", disk.Ops(), tally)
}

// What a crash left can crash again, while it is being recovered.
func TestCrashDuringRecovery(t *testing.T) {
	disk := faultdisk.New(t, "first")
	walFull.run(t, disk, 8)
	plan := faultdisk.Plan{Every: 7, Modes: []faultdisk.Mode{faultdisk.None, faultdisk.Subset, faultdisk.Torn}}
	faultdisk.EachCrash(t, disk, plan, func(t *testing.T, first faultdisk.Crash) {
		again := faultdisk.NewAt(t, "second", first.Dir)
		conn, err := walFull.open(again.URI(database))
		if err != nil {
			t.Fatal(err)
		}
		closed(t, conn)
		for n := 0; n <= again.Ops(); n++ {
			second, err := again.CrashAt(n, faultdisk.Subset, 1, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(second.Path(database), first.Acked()); err != nil {
				t.Errorf("%v, then %v: %v", first, second, err)
			}
		}
	})
}
