package letterfile

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// Mirror keeps a folder of items in step with the letters of a job: what died has its file
// there, what is resolved or given up has none. It is not safe for concurrent use.
type Mirror struct {
	office *office.Office
	to     *itemfile.Writer
	queue  string
	actor  string
	mask   func(*nixie.Letter)
	known  bool
	last   time.Time              // of the deaths that have their files
	wrote  map[nixie.ID]time.Time // when each letter that has its file had died
}

// MirrorOptions say what to keep in step.
type MirrorOptions struct {
	Folder string
	Job    string
	Office *office.Office
	Actor  string              // who removes files
	Mask   func(*nixie.Letter) // hides secrets in what is written; nil hides nothing
	Known  bool                // write only items that have their files already
	Clock  func() time.Time
}

// OpenMirror opens a folder, which is made if need be.
func OpenMirror(o MirrorOptions) (*Mirror, error) {
	to, err := itemfile.NewWriter(o.Folder, o.Clock)
	if err != nil {
		return nil, err
	}
	if o.Mask == nil {
		o.Mask = func(*nixie.Letter) {}
	}
	return &Mirror{office: o.Office, to: to, queue: itemfile.Queue(o.Job), actor: o.Actor, mask: o.Mask, known: o.Known, wrote: map[nixie.ID]time.Time{}}, nil
}

// sameMoment is how long before the last death that is known others may have died which
// are not.
const sameMoment = 5 * time.Second

// Add writes what died since the last call.
func (m *Mirror) Add(ctx context.Context) error {
	f := nixie.Filter{Queues: []string{m.queue}, Statuses: unresolved}
	last := m.last
	if !last.IsZero() {
		f.Died.After = m.last.Add(-sameMoment)
	}
	for l, err := range m.office.AllLetters(ctx, f, true) {
		if err != nil {
			return err
		}
		if m.wrote[l.ID].Equal(l.DiedAt) {
			continue
		}
		known, err := m.knows(&l)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		m.mask(&l)
		item, _ := itemfile.ItemOf(&l) // what is damaged is left out, as an export says
		if err := m.to.Write(&l, item); err != nil {
			return err
		}
		m.wrote[l.ID] = l.DiedAt
		if l.DiedAt.After(last) {
			last = l.DiedAt
		}
	}
	m.last = last
	return nil
}

// knows reports whether the file of a letter is written.
func (m *Mirror) knows(l *nixie.Letter) (bool, error) {
	if !m.known {
		return true, nil
	}
	return m.to.Has(itemfile.Job(m.queue), itemfile.ID(l))
}

// unresolved letters have files, and ended ones have none.
var (
	unresolved = []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	ended      = []nixie.Status{nixie.StatusResolved, nixie.StatusDiscarded}
)

// Close adds what died, removes what is resolved or given up, and gives the folder back.
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
		if _, err := m.to.Remove(itemfile.Job(m.queue), itemfile.ID(&l), by); err != nil {
			return err
		}
	}
	return nil
}
