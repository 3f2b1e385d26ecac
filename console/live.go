package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/nixie-go/nixie/office"
)

// Headers of live pages, see docs/decisions/0051.
const (
	liveHeader = "Nixie-Live" // the version that the browser has, or gets
	ageHeader  = "Nixie-Age"  // milliseconds since what the browser has, or gets, was so
	nextHeader = "Nixie-Next" // milliseconds until there may be a newer one
)

// How live pages are kept up to date, see docs/decisions/0064.
const (
	liveBusy     = 3 * time.Second        // between two looks at the store, for all who watch, while an operation runs
	liveUsual    = 10 * time.Second       // else
	liveShare    = 100                    // times the processor time of a look and its pages, before the next one
	liveAtMost   = 30 * time.Second       // between two looks, however much processor time they take
	livePatience = 2 * time.Second        // for what is newer, before who watches is answered without it
	liveSoon     = 250 * time.Millisecond // until who watches asks again for what is being made
	liveGone     = 10 * time.Second       // after its last question a page is not watched
	liveKept     = 64                     // addresses whose page is kept for the others who watch it
)

// live has what all who watch share: one look at the store, and one page for each address. Its lock
// is held for its fields, and never while a store is asked, a page is made or anything is sent.
type live struct {
	mu      sync.Mutex
	looking *task     // the look that is being taken
	at      time.Time // when the last look began; what it saw was so then
	busy    bool      // an operation ran at the last look
	numbers numbers   // that the last look saw
	meter   *meter    // of the last look, with the pages since
	pages   map[address]*kept
}

// numbers say whether two looks saw the same: they differ when those of a queue or an operation do.
type numbers struct{ version, operations string }

// address is that of a page with its query, for persons with the same rights: nothing else of a
// request changes a page.
type address struct {
	rights Rights
	uri    string
}

// kept is the page of an address.
type kept struct {
	making  *task
	asked   time.Time // by who watches, last
	began   time.Time // when the store was asked for it
	version string    // of the look before; "" is no page yet
	body    []byte
	to      string // the address that has the page; "" is this one
}

func newLive() *live { return &live{meter: &meter{}, pages: map[address]*kept{}} }

// between is the time from the beginning of a look to that of the next.
func (c *console) between() time.Duration {
	if c.live.busy || c.runs.going() {
		return liveBusy
	}
	return min(max(liveUsual, liveShare*c.live.meter.spent()), liveAtMost)
}

// next returns in how long it is worth asking again.
func (c *console) next(making *task) time.Duration {
	if making != nil {
		return liveSoon
	}
	return max(c.live.at.Add(c.between()).Sub(c.Clock()), 0)
}

// look waits for the numbers of the store, if the last ones are old. Who is not patient goes on
// with those.
func (c *console) look(patient context.Context, r *http.Request) error {
	l := c.live
	l.mu.Lock()
	if l.looking == nil && c.next(nil) == 0 {
		m := &meter{}
		ctx := context.WithValue(context.WithoutCancel(r.Context()), meterKey{}, m)
		l.looking = begin(func() error {
			return metered(ctx, func() error { return c.lookAnew(ctx, m) })
		})
	}
	looking := l.looking
	l.mu.Unlock()
	if looking == nil {
		return nil
	}
	return looking.within(patient)
}

func (c *console) lookAnew(ctx context.Context, m *meter) (err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	l, began := c.live, c.Clock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.looking = nil
	}()
	runs := c.runs.version()
	queues, err := c.office.Queues(ctx)
	if err != nil {
		return err
	}
	operations, _, err := c.office.Operations(ctx, office.Page{Limit: operationsLooked})
	if err != nil {
		return err
	}
	c.flow.add(queues, began)
	seen := numbersOf(queues, operations, runs, began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = c.runs.going() || l.numbers.operations != "" && seen.operations != l.numbers.operations
	l.at, l.numbers, l.meter = began, seen, m
	return nil
}

// numbersOf has a version that differs when the numbers or settings of a queue do, those of an
// operation, and each minute, because pages have ages.
func numbersOf(queues []office.QueueInfo, operations []office.Operation, runs int, now time.Time) (n numbers) {
	sum := fnv.New64a()
	fmt.Fprintln(sum, runs)
	for i := range operations {
		op := &operations[i]
		fmt.Fprintln(sum, op.ID, op.Pending, op.Done, op.Skipped, op.Failed, op.Outcome)
	}
	n.operations = fmt.Sprintf("%x", sum.Sum64())
	fmt.Fprintln(sum, now.Truncate(time.Minute).Unix())
	for i := range queues {
		q := &queues[i]
		fmt.Fprintln(sum, q.Name, q.Total, q.Ready, q.Blocked, q.Scheduled, q.Leased, q.Succeeded, q.Discarded, q.Canceled, q.Dead,
			q.Retried, q.Died, q.Purged, q.Settings)
	}
	n.version = fmt.Sprintf("%x", sum.Sum64())
	return n
}

// had is the page that a browser has.
type had struct {
	version string
	read    time.Time // from the store; zero is not known
}

func hadBy(r *http.Request, now time.Time) had {
	h := had{version: r.Header.Get(liveHeader)}
	if age, err := strconv.ParseUint(r.Header.Get(ageHeader), 10, 32); err == nil {
		h.read = now.Add(-time.Duration(age) * time.Millisecond)
	}
	return h
}

// watch answers who has a version of a page: with nothing while there is none that is newer, else
// with the newest that is there. What takes long to make is answered the next time.
func (c *console) watch(w http.ResponseWriter, r *http.Request, p page, shown, trouble *template.Template) {
	c = c.everyone()
	patient, end := context.WithTimeout(r.Context(), livePatience)
	defer end()
	has := hadBy(r, c.Clock())
	err := c.look(patient, r)
	if err != nil {
		c.fail(w, r, trouble, err)
		return
	}
	k, making := c.renew(r, p, shown, has)
	if making != nil {
		if err := making.within(patient); err != nil {
			c.fail(w, r, trouble, err)
			return
		}
	}
	switch newer := c.newer(w.Header(), k, has); {
	case newer == nil:
		w.WriteHeader(http.StatusNoContent)
	case newer.to != "":
		http.Redirect(w, r, newer.to, http.StatusSeeOther)
	default:
		send(w, http.StatusOK, bytes.NewBuffer(newer.body))
	}
}

// renew returns what is kept for an address, and the task that makes its page anew if what is kept
// is neither of the last look nor newer than what a browser has.
func (c *console) renew(r *http.Request, p page, shown *template.Template, has had) (*kept, *task) {
	l := c.live
	l.mu.Lock()
	defer l.mu.Unlock()
	k, newest := l.page(address{c.rights, r.URL.RequestURI()}, c.Clock()), l.numbers.version
	if newest == "" || has.version == newest || k.version == newest && !k.began.Before(has.read) {
		return k, nil
	}
	if k.making == nil {
		k.making = c.make(r, p, shown, k)
	}
	return k, k.making
}

// newer returns a page if it is newer than the one that a browser has, else nil. It sets the
// headers that say which one the browser has then, since when it is so, and when to ask again.
func (c *console) newer(h http.Header, k *kept, has had) *kept {
	l := c.live
	l.mu.Lock()
	defer l.mu.Unlock()
	since := func(at time.Time) string { return milliseconds(c.Clock().Sub(at)) }
	h.Set(nextHeader, milliseconds(c.next(cmp.Or(l.looking, k.making))))
	switch newest := l.numbers.version; {
	case newest != "" && has.version == newest:
		h.Set(liveHeader, newest)
		h.Set(ageHeader, since(l.at))
		return nil
	case k.version == "" || k.version == has.version || k.began.Before(has.read):
		return nil // nothing is known of what the browser has
	case k.version == newest && l.at.After(k.began):
		h.Set(ageHeader, since(l.at)) // nothing has changed since it was made
	default:
		h.Set(ageHeader, since(k.began))
	}
	h.Set(liveHeader, k.version)
	page := *k
	return &page
}

// page returns what is kept for an address. The address that was not asked for
// the longest makes room.
func (l *live) page(at address, now time.Time) *kept {
	k := l.pages[at]
	if k == nil {
		if len(l.pages) >= liveKept {
			oldest := at
			for other, page := range l.pages {
				if oldest == at || page.asked.Before(l.pages[oldest].asked) {
					oldest = other
				}
			}
			delete(l.pages, oldest)
		}
		k = &kept{}
		l.pages[at] = k
	}
	k.asked = now
	return k
}

// make makes the page of an address for all who watch it. The lock is held.
func (c *console) make(r *http.Request, p page, shown *template.Template, k *kept) *task {
	l := c.live
	ctx := context.WithValue(context.WithoutCancel(r.Context()), meterKey{}, l.meter)
	_ = r.ParseForm() // a query that cannot be read is one with less values; the body is not read later
	r = r.Clone(ctx)
	return begin(func() (err error) {
		made := kept{}
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if k.making = nil; made.version != "" {
				k.began, k.version, k.body, k.to = made.began, made.version, made.body, made.to
			}
		}()
		if c.isSearch(r) {
			defer c.searches.ofWatched()()
		}
		l.mu.Lock()
		version, gone := l.numbers.version, c.Clock().Sub(k.asked) > liveGone
		l.mu.Unlock()
		if gone {
			return nil
		}
		began := c.Clock()
		return metered(ctx, func() error {
			a, body, err := c.composeNow(r, p, shown, 0)
			if err == nil {
				made = kept{began: began, version: version, to: a.To}
			}
			if body != nil {
				made.body = body.Bytes()
			}
			return err
		})
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
