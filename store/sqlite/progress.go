package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// stages is how far this process is with what it holds, in the file of its lock.
// Whoever finds that the owner is gone, or that a lease of it is over, reads there
// what needs no judgement. A write to the page cache is enough for that: it
// outlives the process, however that ends.
//
// The file is a header and slots of a fixed size, of which none crosses a page. A
// slot that is free is not cleared: place and number name a lease for good, and
// nobody looks for one that is over.
type progressFile struct {
	mu     sync.Mutex
	file   *os.File // nil without a lock
	image  []byte   // what the file holds, unless it is behind
	behind bool     // a write failed, as on a full disk
	slot   map[leaseID]int
	free   []int
	lost   map[leaseID]bool // leases that had ended: their slots are kept until they are swept
}

// leaseID names a lease among all that ever were.
type leaseID struct{ pos, number int64 }

func leaseOf(d *nixie.Delivery) leaseID { return leaseID{d.Lease.Handle.Pos, d.Lease.Number} }

const (
	slotSize = 32
	sumSize  = 4
	maxSlots = 2 * nixie.MaxBatch // deliveries with a stage at a time
)

// errNotLogged says that the stage is not noted.
var errNotLogged = errors.New("the stage of deliveries is not noted")

// begin notes stages in a file from now on; nil ends it.
func (g *progressFile) begin(f *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file, g.image, g.slot, g.free, g.lost = f, progressHeader(bootName()), map[leaseID]int{}, nil, map[leaseID]bool{}
	g.behind = true // the header is new
}

// progressHeader tells in which life of the machine the file was written: after a
// power loss it may be older than what was done.
func progressHeader(boot string) []byte {
	sum := sha256.Sum256([]byte(boot))
	return sum[:slotSize]
}

// LogProgress implements lease.ProgressLog.
func (s *Store) LogProgress(progress lease.Progress, ds ...*nixie.Delivery) error {
	return s.owner.progress.log(progress, ds)
}

func (g *progressFile) log(progress lease.Progress, ds []*nixie.Delivery) error {
	leases := make([]leaseID, 0, len(ds))
	for _, d := range ds {
		if d.Lease.Handle.Pos == 0 || progress == lease.Succeeded && len(lease.NewSteps(d)) > 0 {
			return errNotLogged
		}
		leases = append(leases, leaseOf(d))
	}
	return g.write(progress, leases)
}

// claimed notes that what is being claimed waits, before the claim is durable: a
// lease that never came to be is not looked for. A claim that cannot be noted goes
// on; a crash is then counted against all of it.
func (g *progressFile) logClaim(got *claimed) {
	_ = g.write(lease.Waiting, got.leases())
}

// leases names what was claimed.
func (got *claimed) leases() []leaseID {
	all := make([]leaseID, 0, len(got.rows)+len(got.members))
	for _, r := range got.rows {
		all = append(all, leaseID{r.pos, r.Number})
	}
	for _, pos := range got.members {
		all = append(all, leaseID{pos, 1})
	}
	return all
}

// forget gives up the slots of a claim that failed.
func (g *progressFile) forget(got *claimed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range got.leases() {
		g.ended(id, nil)
	}
}

func (g *progressFile) write(progress lease.Progress, leases []leaseID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if progress == lease.Begun {
		leases = slices.DeleteFunc(leases, g.isNew) // nothing was noted, which says the same
	}
	if g.file == nil || len(g.slot)+g.count(leases) > maxSlots {
		return errNotLogged
	}
	from, to := len(g.image), 0
	for _, id := range leases {
		at, known := g.slot[id]
		if !known {
			at = g.take()
			g.slot[id] = at
		}
		encodeSlot(g.image[at:at+slotSize], id, progress)
		from, to = min(from, at), max(to, at+slotSize)
	}
	if to == 0 {
		return nil
	}
	if g.behind {
		from, to = 0, len(g.image)
	}
	_, err := g.file.WriteAt(g.image[from:to], int64(from))
	g.behind = err != nil
	return err
}

func (g *progressFile) isNew(id leaseID) bool {
	_, known := g.slot[id]
	return !known
}

// count is how many slots leases need that have none.
func (g *progressFile) count(leases []leaseID) (n int) {
	for _, id := range leases {
		if g.isNew(id) {
			n++
		}
	}
	return n
}

// take finds a free slot.
func (g *progressFile) take() (at int) {
	if n := len(g.free); n > 0 {
		at, g.free = g.free[n-1], g.free[:n-1]
		return at
	}
	at = len(g.image)
	g.image = append(g.image, make([]byte, slotSize)...)
	return at
}

// ended gives up the slot of a lease that has ended with an answer. When it ended by
// time, whoever sweeps it has yet to read the stage: that slot is kept, and its holder may
// still note that it has begun. After any other error the call is repeated.
func (g *progressFile) ended(id leaseID, err error) {
	switch {
	case err == nil:
		g.release(id)
	case nixie.CodeOf(err) == nixie.CodeLeaseLost && !g.isNew(id):
		g.lost[id] = true
	}
}

// release frees the slot of a lease, if it has one.
func (g *progressFile) release(id leaseID) {
	if at, known := g.slot[id]; known {
		g.free = append(g.free, at)
		delete(g.slot, id)
	}
}

// settled takes the answers to settlements.
func (g *progressFile) settled(settlements []nixie.Settlement, errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.slot) == 0 {
		return
	}
	for i := range settlements {
		if d := settlements[i].Delivery; d != nil {
			g.ended(leaseOf(d), errs[i])
		}
	}
}

// extended takes the answers to renewals.
func (g *progressFile) extended(ds []*nixie.Delivery, errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, d := range ds {
		if d != nil && errs[i] != nil {
			g.ended(leaseOf(d), errs[i])
		}
	}
}

// swept frees the slots of lost leases: a sweep has read them.
func (g *progressFile) swept() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.lost {
		g.release(id)
	}
	clear(g.lost)
}

func encodeSlot(slot []byte, id leaseID, progress lease.Progress) {
	binary.LittleEndian.PutUint64(slot, uint64(id.pos))
	binary.LittleEndian.PutUint64(slot[8:], uint64(id.number))
	slot[16] = byte(progress)
	binary.LittleEndian.PutUint32(slot[slotSize-sumSize:], crc32.ChecksumIEEE(slot[:slotSize-sumSize]))
}

// readProgress reads the file of an owner. What never was written, or was cut by a
// power loss, is nothing. Of another life of the machine only successes hold.
func readProgress(r io.Reader, boot string) map[leaseID]lease.Progress {
	data, _ := io.ReadAll(io.LimitReader(r, (1+maxSlots)*slotSize)) // what could be read holds
	if len(data) < slotSize {
		return nil
	}
	thisLife := boot != "" && bytes.Equal(data[:slotSize], progressHeader(boot))
	found := map[leaseID]lease.Progress{}
	for data = data[slotSize:]; len(data) >= slotSize; data = data[slotSize:] {
		if binary.LittleEndian.Uint32(data[slotSize-sumSize:]) != crc32.ChecksumIEEE(data[:slotSize-sumSize]) {
			continue
		}
		id := leaseID{int64(binary.LittleEndian.Uint64(data)), int64(binary.LittleEndian.Uint64(data[8:]))}
		if progress := lease.Progress(data[16]); thisLife || progress == lease.Succeeded {
			found[id] = max(found[id], progress)
		}
	}
	return found
}

// progressIn reads the file of a lock. Of one that is gone nothing is known: its
// owner's messages are judged and, at worst, run again.
func (s *Store) progressIn(lock string) map[leaseID]lease.Progress {
	f, err := os.Open(filepath.Join(s.path+lockFolder, filepath.Base(lock)))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read
	return readProgress(f, bootName())
}
