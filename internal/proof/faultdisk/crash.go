package faultdisk

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Crash is a moment at which the power went, and what was left.
type Crash struct {
	// Dir is the directory with the files that were left. It is the check's
	// own, to reopen, repair and write to.
	Dir string

	// Op is the number of changes that were done; Change the last of them,
	// the zero value when Op is 0.
	Op     int
	Change Change

	Mode Mode
	Seed uint64

	acked []string
}

// Path returns the path of a file in the directory of the crash.
func (c Crash) Path(name string) string { return filepath.Join(c.Dir, filepath.FromSlash(name)) }

// Acked returns the labels of the marks that were made before the power went,
// oldest first: what the program had promised.
func (c Crash) Acked() []string { return slices.Clone(c.acked) }

// String describes the crash.
func (c Crash) String() string {
	return fmt.Sprintf("power loss after change %d (%v), mode %v, seed %d", c.Op, c.Change, c.Mode, c.Seed)
}

// CrashAt fills an existing, empty directory with the files as they could be
// had the power gone just after change n (0 is before the first). It does not
// disturb the disk. The same trace, n, mode and seed give the same files.
func (d *Disk) CrashAt(n int, mode Mode, seed uint64, dir string) (Crash, error) {
	tr := d.snapshot()
	if n < 0 || n > len(tr.changes) {
		return Crash{}, fmt.Errorf("faultdisk: no change %d, the trace has %d", n, len(tr.changes))
	}
	r := newReplay(tr)
	r.advance(n)
	files, err := r.image(mode, seed)
	if err != nil {
		return Crash{}, err
	}
	if err := save(files, dir); err != nil {
		return Crash{}, err
	}
	return r.crash(mode, seed, dir), nil
}

func (d *Disk) snapshot() *trace {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trace.clone()
}

func (r *replay) crash(mode Mode, seed uint64, dir string) Crash {
	c := Crash{Dir: dir, Op: r.ops, Mode: mode, Seed: seed, acked: r.trace.acked(r.ops)}
	if r.ops > 0 {
		c.Change = r.trace.changes[r.ops-1]
	}
	return c
}

// Plan says which crashes EachCrash tries. The zero value is every change in
// every mode with one seed.
type Plan struct {
	// From and To bound the changes after which the power goes. To 0 means the
	// last one.
	From, To int

	// Every skips changes: 1 (and 0) tries all of them, 10 each tenth. The last
	// one is always tried.
	Every int

	// Modes are the modes to try; none means all.
	Modes []Mode

	// Seeds counts the seeds that a mode with chance in it gets; 0 means 1.
	Seeds int

	// Seed is the first seed.
	Seed uint64
}

// Tally counts what EachCrash did.
type Tally struct {
	// Points counts crashes: moments times modes times seeds.
	Points int

	// Images counts those whose files and promises differed from all before;
	// only these are checked, the others would be the same check again.
	Images int
}

// EachCrash lets the power go at the moments of the plan and calls check with
// what is left, as a subtest named after moment, mode and seed. The modes of
// one moment run in parallel. The trace is taken when EachCrash begins.
func EachCrash(t *testing.T, disk *Disk, plan Plan, check func(t *testing.T, crash Crash)) Tally {
	t.Helper()
	tr := disk.snapshot()
	plan, err := plan.complete(len(tr.changes))
	if err != nil {
		t.Fatal(err)
	}
	var tally Tally
	seen := map[[sha256.Size]byte]bool{}
	r := newReplay(tr)
	for op := plan.From; op <= plan.To; op = plan.next(op) {
		r.advance(op)
		images, points, err := r.fresh(plan, seen)
		if err != nil {
			t.Fatal(err)
		}
		tally.Points += points
		tally.Images += len(images)
		if len(images) > 0 {
			t.Run(fmt.Sprintf("op=%d", op), func(t *testing.T) { checkAll(t, images, check) })
		}
	}
	return tally
}

// image is a crash with the files that go to its directory.
type image struct {
	crash Crash
	files map[string][]byte
}

func checkAll(t *testing.T, images []image, check func(t *testing.T, crash Crash)) {
	for _, im := range images {
		t.Run(fmt.Sprintf("mode=%v,seed=%d", im.crash.Mode, im.crash.Seed), func(t *testing.T) {
			t.Parallel()
			crash := im.crash
			crash.Dir = scratch(t)
			if err := save(im.files, crash.Dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%v; acknowledged: %s", crash, strings.Join(crash.acked, " "))
				}
			})
			check(t, crash)
		})
	}
}

// fresh builds the images of the plan for the present moment that were not
// seen before, and counts all of them.
func (r *replay) fresh(plan Plan, seen map[[sha256.Size]byte]bool) ([]image, int, error) {
	var images []image
	points := 0
	for _, mode := range plan.Modes {
		seeds := plan.Seeds
		if !mode.random() {
			seeds = 1
		}
		for i := range seeds {
			points++
			seed := plan.Seed + uint64(i)
			files, err := r.image(mode, seed)
			if err != nil {
				return nil, 0, err
			}
			im := image{crash: r.crash(mode, seed, ""), files: files}
			if sum := im.sum(); !seen[sum] {
				seen[sum] = true
				images = append(images, im)
			}
		}
	}
	return images, points, nil
}

// sum identifies the files together with the number of promises.
func (im image) sum() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", len(im.crash.acked))
	for _, name := range slices.Sorted(maps.Keys(im.files)) {
		fmt.Fprintf(h, "%q %d\n", name, len(im.files[name]))
		h.Write(im.files[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// complete fills in defaults and checks the plan against the trace.
func (p Plan) complete(ops int) (Plan, error) {
	if p.To == 0 {
		p.To = ops
	}
	if p.From < 0 || p.To > ops || p.From > p.To {
		return p, fmt.Errorf("faultdisk: plan from %d to %d, the trace has changes 1 to %d", p.From, p.To, ops)
	}
	if p.Every < 0 || p.Seeds < 0 {
		return p, fmt.Errorf("faultdisk: plan with Every %d and Seeds %d, both must be 0 or more", p.Every, p.Seeds)
	}
	p.Every, p.Seeds = max(p.Every, 1), max(p.Seeds, 1)
	if len(p.Modes) == 0 {
		p.Modes = Modes()
	}
	return p, nil
}

// next returns the moment after op. The last is To, and what follows it ends
// the loop.
func (p Plan) next(op int) int {
	if op < p.To && op+p.Every > p.To {
		return p.To
	}
	return op + p.Every
}

// save writes files into a directory.
func save(files map[string][]byte, dir string) error {
	for name, content := range files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return fmt.Errorf("faultdisk: %w", err)
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return fmt.Errorf("faultdisk: %w", err)
		}
	}
	return nil
}

// Calls chooses the calls to the disk that EachFault fails.
type Calls struct {
	First int // the first one; 0 means 1
	Every int // skips calls: 1 (and 0) fails each of them, 10 each tenth
	Limit int // a scenario that still reaches the fault at this call fails the test
}

// EachFault runs a scenario on a new disk with the fault at the first call, then on
// another with the fault at the next, and so on until the scenario ends without
// reaching the fault; each run is a subtest. The scenario may see errors; it
// must end, must close what it opened, and judges for itself what it finds
// after [Disk.Heal]. EachFault returns the number of runs in which the fault struck.
func EachFault(t *testing.T, fault Fault, calls Calls, scenario func(t *testing.T, disk *Disk)) int {
	t.Helper()
	struck := 0
	for n := max(calls.First, 1); n <= calls.Limit; n += max(calls.Every, 1) {
		ran, fired := false, 0
		ok := t.Run(fmt.Sprintf("%v at %d", fault, n), func(t *testing.T) {
			ran = true
			disk := New(t, "fault")
			disk.FailAt(n, fault)
			scenario(t, disk)
			fired = disk.Fired()
		})
		if !ran {
			continue // left out by the -run flag
		}
		if !ok || fired == 0 {
			return struck
		}
		struck++
	}
	t.Errorf("faultdisk: the scenario still reaches %v at call %d", fault, calls.Limit)
	return struck
}
