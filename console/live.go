package console

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"time"

	"github.com/nixie-go/nixie/office"
)

// How live pages are kept up to date, see docs/decisions/0051.
const (
	liveHeader = "Nixie-Live"    // of a request: the version that the browser has; of an answer: the one that it gets
	liveEvery  = 3 * time.Second // between two looks at the store, for all who watch
	liveShare  = 150             // times as long as a look and its pages took, before the next one
	liveAtMost = time.Minute     // between two looks, however long they take
	liveKept   = 64              // addresses whose page is kept for the others who watch it
)

// live has what all who watch share: one look at the store, and the pages of that look.
type live struct {
	lock    chan struct{} // holds one element while a request reads or writes the fields below
	at      time.Time
	took    time.Duration // the last look, with the pages since
	version string
	pages   map[string][]byte // by address
}

func newLive() *live { return &live{lock: make(chan struct{}, 1), pages: map[string][]byte{}} }

// enter takes the lock, and returns the function that gives it back.
func (l *live) enter(ctx context.Context) (func(), error) {
	select {
	case l.lock <- struct{}{}:
		return func() { <-l.lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look asks the store for its numbers, unless it was asked a moment ago. When they differ from
// those before, the version does. A store that takes long to answer is asked less often, so that
// those who watch cost one or two hundredths of a processor and not more, though a page asks two
// questions at once.
func (c *console) look(ctx context.Context) error {
	l, now := c.live, c.Clock()
	if pause := min(max(liveEvery, liveShare*l.took), liveAtMost); !l.at.IsZero() && now.Sub(l.at) < pause {
		return nil
	}
	l.took = 0
	queues, err := c.office.Queues(ctx)
	if err != nil {
		return err
	}
	if version := versionOf(queues, now); version != l.version {
		l.version = version
		clear(l.pages)
	}
	l.at = now
	c.flow.add(queues, now)
	return nil
}

// versionOf returns a text that differs when the numbers or settings of a queue do, and each
// minute, because pages have ages.
func versionOf(queues []office.QueueInfo, now time.Time) string {
	sum := fnv.New64a()
	fmt.Fprintln(sum, now.Truncate(time.Minute).Unix())
	for i := range queues {
		q := &queues[i]
		fmt.Fprintln(sum, q.Name, q.Total, q.Ready, q.Blocked, q.Scheduled, q.Leased, q.Succeeded, q.Discarded, q.Canceled, q.Dead,
			q.Retried, q.Died, q.Purged, q.Settings)
	}
	return fmt.Sprintf("%x", sum.Sum64())
}

// watch answers who has a version of a page: with nothing while that is the newest, else with the
// page. Those who watch the same address get the same bytes.
func (c *console) watch(w http.ResponseWriter, r *http.Request, p page, shown, trouble *template.Template) {
	leave, err := c.live.enter(r.Context())
	if err != nil {
		c.fail(w, r, trouble, err)
		return
	}
	defer leave()
	began := c.Clock()
	defer func() { c.live.took += c.Clock().Sub(began) }()
	if err := c.look(r.Context()); err != nil {
		c.fail(w, r, trouble, err)
		return
	}
	w.Header().Set(liveHeader, c.live.version)
	if r.Header.Get(liveHeader) == c.live.version {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	address := r.URL.RequestURI()
	body, kept := c.live.pages[address]
	if !kept {
		a, err := p.show(c, r)
		if err != nil {
			c.fail(w, r, trouble, err)
			return
		}
		page, err := c.render(r, p, shown, a)
		if err != nil {
			c.fail(w, r, trouble, err)
			return
		}
		if body = page.Bytes(); len(c.live.pages) < liveKept {
			c.live.pages[address] = body
		}
	}
	send(w, http.StatusOK, bytes.NewBuffer(body))
}
