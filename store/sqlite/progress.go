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

// progressFile logs the progress of each delivery that this process holds, in its lock file. When
// the process has vanished or a lease is over, another process reads there which deliveries need no
// judgement. A write to the page cache is enough, because it outlives the process.
//
// The file has a header and slots of a fixed size, none of which crosses a page. A free slot is not
// cleared: position and number name a lease for good, and no sweep looks up a lease that has ended.
type progressFile struct {
	mu     sync.Mutex
	file   *os.File // nil without a lock
	image  []byte   // content of the file, unless it is behind
	behind bool     // a write failed, as on a full disk
	slot   map[leaseID]int
	free   []int
	lost   map[leaseID]bool // leases that ended by time: their slots stay until a sweep
}

// leaseID names a lease among all leases that ever were.
type leaseID struct{ pos, number int64 }

func leaseOf(d *nixie.Delivery) leaseID { return leaseID{d.Lease.Handle.Pos, d.Lease.Number} }

// stopSlot returns the slot of a process that was told to stop. No message has position 0.
func stopSlot() leaseID { return leaseID{} }

// tell logs whether this process was told to stop.
func (g *progressFile) tell(told bool) error {
	progress := lease.Progress(0)
	if told {
		progress = lease.Succeeded // which counts after another boot, too
	}
	return g.write(progress, []leaseID{stopSlot()})
}

const (
	slotSize = 32
	sumSize  = 4
	maxSlots = 2 * nixie.MaxBatch // deliveries with a slot at a time
)

// errNotLogged says that the progress of some deliveries was not logged.
var errNotLogged = errors.New("the progress of deliveries is not logged")

// begin logs into a file from now on; nil ends it.
func (g *progressFile) begin(f *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file, g.image, g.slot, g.free, g.lost = f, progressHeader(bootName()), map[leaseID]int{}, nil, map[leaseID]bool{}
	g.behind = true // the header is new
}

// progressHeader identifies the boot of the machine that wrote the file. After a power loss the
// file may be older than the store.
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

// logClaim logs that the messages of a claim wait, before the claim is durable: no sweep looks up a
// lease that never came to be. If logging fails, the claim goes on; a crash then counts against all
// its messages.
func (g *progressFile) logClaim(got *claimed) {
	_ = g.write(lease.Waiting, got.leases())
}

// leases lists the leases of a claim.
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

// forget frees the slots of a claim that failed.
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
		leases = slices.DeleteFunc(leases, g.isNew) // without a slot it counts as begun
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

// count returns how many of the leases have no slot.
func (g *progressFile) count(leases []leaseID) (n int) {
	for _, id := range leases {
		if g.isNew(id) {
			n++
		}
	}
	return n
}

// take returns a free slot.
func (g *progressFile) take() (at int) {
	if n := len(g.free); n > 0 {
		at, g.free = g.free[n-1], g.free[:n-1]
		return at
	}
	at = len(g.image)
	g.image = append(g.image, make([]byte, slotSize)...)
	return at
}

// ended frees the slot of a lease that has ended with an answer. If the lease ended by time, a
// sweep has yet to read the slot: it stays, and its holder may still log that it has begun. After
// any other error the worker repeats the call.
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

// settled frees slots by the answers to settlements.
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

// extended frees slots by the answers to renewals.
func (g *progressFile) extended(ds []*nixie.Delivery, errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, d := range ds {
		if d != nil && errs[i] != nil {
			g.ended(leaseOf(d), errs[i])
		}
	}
}

// swept frees the slots of lost leases, since a sweep has read them.
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

// readProgress reads the file of an owner. It skips slots that were never written or that a power
// loss has cut. From another boot of the machine only successes count.
func readProgress(r io.Reader, boot string) map[leaseID]lease.Progress {
	data, _ := io.ReadAll(io.LimitReader(r, (1+maxSlots)*slotSize)) // the part that could be read is valid
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

// progressIn reads the lock file of an owner. If the file is gone, nothing is known of its
// deliveries: they are judged and, at worst, run again.
func (s *Store) progressIn(lock string) map[leaseID]lease.Progress {
	f, err := os.Open(filepath.Join(s.path+lockFolder, filepath.Base(lock)))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read
	return readProgress(f, bootName())
}
