// Package itemdir is a read-only store over the dead letter items of MapReduce jobs: JSON files,
// one for each item, in folders called items. It has letters only. Calls that concern queued or
// leased messages are refused, with the way out.
//
// Package itemfile reads the files. A file that cannot be read becomes a damaged letter that says
// so, so no listing gets shorter silently. The index of a job is not read, so it may be missing or
// wrong.
package itemdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Store is a folder of items. It is safe for concurrent use. Other programs may change the folder
// meanwhile: each listing begins with the present files.
type Store struct {
	refusals
	dir   *itemfile.Dir
	clock func() time.Time

	mu      sync.Mutex
	heads   []head // of the last listing that began
	counted counts // of the last count
}

var _ store.Store = (*Store)(nil)

// Open opens a folder that has items somewhere below it. A nil clock is [time.Now].
func Open(folder string, clock func() time.Time) (*Store, error) {
	dir, err := itemfile.OpenDir(folder)
	if err != nil {
		return nil, err
	}
	if _, err := dir.Folders(); err != nil {
		_ = dir.Close() // it was only read
		return nil, err
	}
	if clock == nil {
		clock = time.Now //nolint:forbidigo // the default
	}
	return &Store{dir: dir, clock: clock}, nil
}

// Close implements [store.Keeper].
func (s *Store) Close() error { return s.dir.Close() }

// head is the part of an item that a listing keeps in memory, about 200 bytes.
type head struct {
	*list
	name string // of the file
	key  string
	died int64
	mark mark
}

// list is the folder of a job's items.
type list struct{ path, job string }

func (h *head) file() string { return path.Join(h.path, h.name) }

// scan finds all items, latest death first.
func (s *Store) scan(ctx context.Context) ([]head, error) {
	paths, err := s.dir.Folders()
	if err != nil {
		return nil, err
	}
	var heads []head
	before := byFile(s.heads)
	for _, at := range paths {
		some, err := s.look(ctx, at, before)
		if err != nil {
			return nil, err
		}
		heads = append(heads, some...)
	}
	slices.SortFunc(heads, newestFirst)
	return heads, nil
}

// look finds the items of one list. It opens only the files that the last listing did not see as
// they are.
func (s *Store) look(ctx context.Context, at string, before map[string]*head) ([]head, error) {
	from, err := s.dir.OpenFolder(at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // it was only read
	names, err := from.Names()
	if err != nil {
		return nil, err
	}
	of, heads := &list{at, s.dir.JobOf(at)}, make([]head, len(names))
	inParallel(ctx, len(names), func() func(int) {
		var room []byte
		return func(i int) {
			h := head{list: of, name: names[i]}
			if known := before[h.file()]; known != nil && known.mark.holds(from, h.name) {
				heads[i] = *known
				heads[i].list = of
				return
			}
			raw, written, err := from.Load(h.name, room)
			h.look(raw, written, err)
			if err == nil {
				h.mark = markOf(len(raw), written, s.clock())
			}
			heads[i] = h
			if cap(raw) <= maxRoom {
				room = raw
			}
		}
	})
	return heads, ended(ctx)
}

// maxRoom limits the buffer that is used again for the next file.
const maxRoom = 1 << 20

// inParallel calls a function for each number below n until ctx ends. Each goroutine has its own
// function, made by begin.
func inParallel(ctx context.Context, n int, begin func() func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxParallel, n) {
		group.Go(func() {
			do := begin()
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

const maxParallel = 8

func newestFirst(a, b head) int {
	return cmp.Or(cmp.Compare(b.died, a.died), cmp.Compare(a.path, b.path), cmp.Compare(a.name, b.name))
}

// look reads the key and the time of death. For a file that cannot be read it takes the name and
// the time of the file.
func (h *head) look(raw []byte, written time.Time, err error) {
	var says struct {
		Key  string    `json:"item_id"`
		Last time.Time `json:"last_attempt"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &says)
	}
	if err != nil || says.Last.IsZero() {
		says.Last = written
	}
	h.died, h.key = says.Last.UnixNano(), itemfile.Name(h.name)
	if says.Key != "" && says.Key != h.key { // usually they are equal, and then share their memory
		h.key = says.Key
	}
}

// queue returns the queue to which an import takes the item.
func (h *head) queue() string { return itemfile.QueueOf(h.job) }

// id makes the ID of the letter, or of its message, from the name of the file.
func (h *head) id(of byte) (id nixie.ID) {
	sum := sha256.Sum256(append([]byte{of}, h.file()...))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|7<<4, id[8]&0x3f|2<<6 // as all IDs a UUID of version 7
	return id
}

const (
	ofLetter  = 'l'
	ofMessage = 'm'
)

// shell returns the letter with the fields that are known without reading the file.
func (h *head) shell() nixie.Letter {
	died := time.Unix(0, h.died).UTC()
	return nixie.Letter{
		ID: h.id(ofLetter), Revision: 1, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Rule: itemfile.System,
		FirstFailedAt: died, LastFailedAt: died, DiedAt: died,
		Message: nixie.Message{ID: h.id(ofMessage), Queue: h.queue(), Type: "item", Key: h.key, State: nixie.Dead, Generation: 1,
			EnqueuedAt: died, EndedAt: died},
	}
}

// reader makes a letter from an item: [itemfile.Read] or [itemfile.ReadFast].
type reader func(raw []byte, queue, channel string) (nixie.Letter, error)

// letter reads an item of a folder. It returns a damaged letter for a file that cannot be read, and
// none for a file that no longer exists.
func (s *Store) letter(h *head, from *itemfile.Folder, as reader) (l nixie.Letter, there bool) {
	l, err := s.read(h, from, as)
	switch {
	case err == nil:
		return l, true
	case errors.Is(err, fs.ErrNotExist):
		return l, false
	}
	l = h.shell()
	f := nixie.Failure{
		Generation: 1, StartedAt: l.DiedAt, FailedAt: l.DiedAt, Class: nixie.ClassUnknown, Reason: nixie.ReasonUnknown,
		Type: "unreadable", Text: err.Error(), Decision: nixie.Bury,
	}
	l.History, l.Class, l.Reason = []nixie.Failure{f}, f.Class, f.Reason
	l.Signature, l.Fingerprint = policy.Signature(&f)
	l.Message.LastFailure, l.Message.LastReason = f.Text, f.Reason
	l.Damage = []string{s.dir.Path(h.file()) + ": " + err.Error()}
	return l, true
}

func (s *Store) read(h *head, from *itemfile.Folder, as reader) (nixie.Letter, error) {
	if from == nil {
		return nixie.Letter{}, fs.ErrNotExist // the whole list has gone
	}
	raw, err := from.Content(h.name)
	if err != nil {
		return nixie.Letter{}, err
	}
	l, err := as(raw, h.queue(), h.job)
	if err == nil {
		err = check.Letter(&l)
	}
	if err != nil {
		return l, err
	}
	shell := h.shell()
	l.ID, l.Revision = shell.ID, shell.Revision
	m, last := &l.Message, &l.History[len(l.History)-1]
	m.ID, m.State, m.Generation, m.EndedAt = shell.Message.ID, shell.Message.State, shell.Message.Generation, l.DiedAt
	m.Hash, m.LastFailure, m.LastReason = nixie.HashBody(m.Body), last.Text, last.Reason
	l.Artifacts = last.Attachments
	return l, nil
}
