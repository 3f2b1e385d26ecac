package letterfile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// Mirror keeps a folder of items in step with the letters of a job. It writes a file for each
// unresolved letter, and removes the file when the letter is resolved, discarded, redriven or
// purged. It is not safe for concurrent use.
type Mirror struct {
	office  *office.Office
	to      *itemfile.Writer
	job     string // in the folder
	queue   string
	actor   string
	mask    func(*nixie.Letter)
	known   map[string]bool        // items that may have files; nil: all
	dead    map[string]bool        // items that had a letter when Follow was called
	last    time.Time              // the newest death that has its file
	written map[nixie.ID]time.Time // by letter that has its file: its death
}

// MirrorOptions name a job and its folder.
type MirrorOptions struct {
	Folder string
	Job    string // as the folder has it; empty is that of the queue
	Queue  string
	Office *office.Office
	Actor  string              // for the audit of removed files
	Mask   func(*nixie.Letter) // hides secrets in files; nil hides nothing
	Known  map[string]bool     // the only items that may have files; nil: all
	Clock  func() time.Time
}

// OpenMirror opens a folder, and makes it if need be.
func OpenMirror(o MirrorOptions) (*Mirror, error) {
	to, err := itemfile.NewWriter(o.Folder, o.Clock)
	if err != nil {
		return nil, err
	}
	if o.Mask == nil {
		o.Mask = func(*nixie.Letter) {}
	}
	return &Mirror{office: o.Office, to: to, job: cmp.Or(o.Job, itemfile.JobOf(o.Queue)), queue: o.Queue, actor: o.Actor, mask: o.Mask,
		known: o.Known, written: map[nixie.ID]time.Time{}}, nil
}

// overlap is the interval before the newest known death in which other deaths may still appear.
const overlap = 5 * time.Second

// Add writes the letters that died since the last call.
func (m *Mirror) Add(ctx context.Context) error {
	f := nixie.Filter{Queues: []string{m.queue}, Statuses: unresolved}
	last := m.last
	if !last.IsZero() {
		f.Died.After = m.last.Add(-overlap)
	}
	for l, err := range m.office.AllLetters(ctx, f, true) {
		if err != nil {
			return err
		}
		if m.written[l.ID].Equal(l.DiedAt) {
			continue
		}
		if m.known != nil && !m.known[itemfile.ItemID(&l)] {
			continue
		}
		m.mask(&l)
		l.Message.Queue = itemfile.QueueOf(m.job)
		item, _ := itemfile.ItemOf(&l) // damaged parts are left out; an export reports them
		if err := m.to.Write(&l, item); err != nil {
			return err
		}
		m.written[l.ID] = l.DiedAt
		if l.DiedAt.After(last) {
			last = l.DiedAt
		}
	}
	m.last = last
	return nil
}

// Follow notes which items are dead before an operator moves letters.
func (m *Mirror) Follow(ctx context.Context) (err error) {
	m.dead, err = m.items(ctx)
	return err
}

// items lists the items with unresolved letters.
func (m *Mirror) items(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for l, err := range m.office.AllLetters(ctx, nixie.Filter{Queues: []string{m.queue}, Statuses: unresolved}, false) {
		if err != nil {
			return nil, err
		}
		all[itemfile.ItemID(&l)] = true
	}
	return all, nil
}

// Moved removes the files of the items that are no longer dead since Follow. By has the action and
// the reason.
func (m *Mirror) Moved(ctx context.Context, by itemfile.Removal) error {
	still, err := m.items(ctx)
	if err != nil {
		return err
	}
	by.Actor = m.actor
	for _, item := range slices.Sorted(maps.Keys(m.dead)) {
		if still[item] {
			continue
		}
		if _, err := m.to.Remove(m.job, item, by); err != nil {
			return err
		}
	}
	return nil
}

// Letters of unresolved statuses have files, and ended ones have none.
var (
	unresolved = []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	ended      = []nixie.Status{nixie.StatusResolved, nixie.StatusDiscarded}
)

// Close adds new deaths, removes the files of ended letters, and closes the folder.
func (m *Mirror) Close(ctx context.Context) error {
	err := m.Add(ctx)
	if err == nil {
		err = m.remove(ctx)
	}
	return errors.Join(err, m.to.Close())
}

func (m *Mirror) remove(ctx context.Context) error {
	for l, err := range m.office.AllLetters(ctx, nixie.Filter{Queues: []string{m.queue}, Statuses: ended}, false) {
		if err != nil {
			return err
		}
		by := itemfile.Removal{Action: string(l.Status), Actor: m.actor, Reason: l.Note}
		if l.Status == nixie.StatusResolved {
			by.Reason = "the item has succeeded"
		}
		if _, err := m.to.Remove(m.job, itemfile.ItemID(&l), by); err != nil {
			return err
		}
	}
	return nil
}
