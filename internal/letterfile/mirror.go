package letterfile

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// Mirror keeps a folder of items in step with the letters of a job. It writes a file for each
// unresolved letter, and removes the file when the letter is resolved or discarded. It is not safe
// for concurrent use.
type Mirror struct {
	office  *office.Office
	to      *itemfile.Writer
	queue   string
	actor   string
	mask    func(*nixie.Letter)
	known   bool
	last    time.Time              // the newest death that has its file
	written map[nixie.ID]time.Time // by letter that has its file: its death
}

// MirrorOptions name a job and its folder.
type MirrorOptions struct {
	Folder string
	Job    string
	Office *office.Office
	Actor  string              // for the audit of removed files
	Mask   func(*nixie.Letter) // hides secrets in files; nil hides nothing
	Known  bool                // write only items that have files already
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
	return &Mirror{office: o.Office, to: to, queue: itemfile.QueueOf(o.Job), actor: o.Actor, mask: o.Mask, known: o.Known,
		written: map[nixie.ID]time.Time{}}, nil
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
		known, err := m.isKnown(&l)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		m.mask(&l)
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

// isKnown reports whether a letter gets a file.
func (m *Mirror) isKnown(l *nixie.Letter) (bool, error) {
	if !m.known {
		return true, nil
	}
	return m.to.Has(itemfile.JobOf(m.queue), itemfile.ItemID(l))
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
		if _, err := m.to.Remove(itemfile.JobOf(m.queue), itemfile.ItemID(&l), by); err != nil {
			return err
		}
	}
	return nil
}
