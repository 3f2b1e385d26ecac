package office

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Bounds of watching.
const (
	DefaultInterval = 2 * time.Second // between two polls
	MinInterval     = 100 * time.Millisecond
	MaxNewsLetters  = 5 // letters that one News names
)

// WatchRequest asks to follow new letters.
type WatchRequest struct {
	Filter   nixie.Filter  // of letters; without statuses unresolved ones match
	Cursor   string        // continue where an earlier watch ended; empty begins as FromNow says
	FromNow  bool          // begin with letters that die from now on, and not with all there are
	Once     bool          // poll once
	Interval time.Duration // between polls; 0 means [DefaultInterval]
	Until    time.Time     // the end of polling; zero means until ctx ends

	// Alarm is called for each new group. One that fails is called again after 1 second, doubled up
	// to 5 minutes, with all unresolved letters of the group since then. May be nil.
	Alarm func(context.Context, News) error
	// Name keeps in the store how far the watch came, and for which groups Alarm failed. The next
	// watch of that name goes on there, or at its Cursor; the first one begins as FromNow does.
	// Empty keeps nothing, and so does a store that cannot. Two watches at once tell twice.
	Name string

	Wait func(ctx context.Context, d time.Duration) error // default a timer
}

// News reports the new letters of one group since the poll before.
type News struct {
	NewGroup    bool         `json:"new_group"` // no older letter of the group is unresolved
	Fingerprint string       `json:"fingerprint"`
	Signature   string       `json:"signature"`
	Reason      nixie.Reason `json:"reason"`
	Added       int64        `json:"added"`   // letters that are new or died again
	Letters     []LetterView `json:"letters"` // the oldest of them, at most [MaxNewsLetters]
	Cursor      string       `json:"cursor"`  // continues after it
}

// Watch polls for new letters and calls tell with each group of them, oldest death first. It
// returns without an error when ctx or w.Until ends, and with the error of tell. The cursor
// continues after the letters told.
func (o *Office) Watch(ctx context.Context, w WatchRequest, tell func(context.Context, News) error) (cursor string, err error) {
	switch {
	case w.Interval == 0:
		w.Interval = DefaultInterval
	case w.Interval < MinInterval:
		return "", nixie.Errorf(nixie.CodeInvalid, "interval is %s: give at least %s", w.Interval, MinInterval)
	}
	if w.Wait == nil {
		w.Wait = sleep
	}
	l := &watcher{Office: o, filter: Unresolved(w.Filter), tell: tell, alarms: alarms{call: w.Alarm, name: w.Name}}
	if l.pos, err = parseWatchPosition(w.Cursor); err != nil {
		return "", err
	}
	known, err := l.resume(ctx, w.Cursor)
	if err != nil {
		return "", ended(ctx, err)
	}
	if (w.FromNow || l.name != "") && w.Cursor == "" && !known {
		if err := l.skip(ctx); err != nil {
			return "", ended(ctx, err)
		}
	}
	for {
		if err := l.look(ctx); err != nil {
			return l.pos.String(), ended(ctx, err)
		}
		pause := l.pause(w.Interval)
		if w.Once || !w.Until.IsZero() && !o.clock().Add(pause).Before(w.Until) {
			return l.pos.String(), nil
		}
		if err := w.Wait(ctx, pause); err != nil {
			return l.pos.String(), ended(ctx, err)
		}
	}
}

// ended drops the error of a call whose context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watchPosition is the position of a watch: the newest death that it has seen, and the letters that
// died at that time. Its text names the highest ID of them.
type watchPosition struct {
	died time.Time
	last nixie.ID
	seen []nixie.ID // in this process
}

func (p watchPosition) String() string {
	if p.died.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%s", p.died.UnixNano(), p.last)
}

func parseWatchPosition(cursor string) (p watchPosition, err error) {
	if cursor == "" {
		return p, nil
	}
	var at int64
	left, right, _ := strings.Cut(cursor, ".")
	_, err = fmt.Sscan(left, &at)
	if err == nil {
		p.last, err = nixie.ParseID(right)
	}
	if p.died = time.Unix(0, at).UTC(); err != nil || p.String() != cursor {
		return p, nixie.Errorf(nixie.CodeInvalid, "cursor %.60q is not of a watch: start without one", cursor)
	}
	return p, nil
}

// covers reports whether the watch has seen a letter as it is.
func (p *watchPosition) covers(l *nixie.Letter) bool {
	if !l.DiedAt.Equal(p.died) {
		return l.DiedAt.Before(p.died)
	}
	return slices.Contains(p.seen, l.ID) || len(p.seen) == 0 && compareIDs(l.ID, p.last) <= 0
}

func compareIDs(a, b nixie.ID) int { return slices.Compare(a[:], b[:]) }

// advance moves the position past a letter.
func (p *watchPosition) advance(l *nixie.Letter) {
	if l.DiedAt.After(p.died) {
		p.died, p.last, p.seen = l.DiedAt, l.ID, nil
	}
	if l.DiedAt.Equal(p.died) {
		p.seen = append(p.seen, l.ID)
		if compareIDs(l.ID, p.last) > 0 {
			p.last = l.ID
		}
	}
}

// watcher is a running watch.
type watcher struct {
	*Office
	filter nixie.Filter
	tell   func(context.Context, News) error
	pos    watchPosition
	older  map[string]bool // see olderGroups
	alarms
}

// since returns the filter for letters that died at the position or later.
func (l *watcher) since(p watchPosition) nixie.Filter {
	f := l.filter
	if f.Died.After.Before(p.died) {
		f.Died.After = p.died
	}
	return f
}

// skip moves the position past all present letters.
func (l *watcher) skip(ctx context.Context) error {
	newest, err := l.latest(ctx, l.filter)
	if err != nil || newest == nil {
		return err
	}
	l.pos = watchPosition{died: newest.DiedAt, last: newest.ID}
	for letter, err := range l.AllLetters(ctx, l.since(l.pos), false) {
		if err != nil {
			return err
		}
		l.pos.advance(&letter)
	}
	return nil
}

// poll tells new letters page by page; within a page the oldest death comes first. A poll with more
// than a page, after a long pause, tells the newest page first, in constant memory.
func (l *watcher) poll(ctx context.Context) error {
	began, told := l.pos, map[string]bool{}
	pos := watchPosition{died: began.died, last: began.last, seen: slices.Clone(began.seen)}
	page := store.Page{Limit: step}
	for {
		letters, next, err := l.store.Letters(ctx, l.since(began), page)
		if err != nil {
			return err
		}
		letters = slices.DeleteFunc(letters, func(letter nixie.Letter) bool { return began.covers(&letter) })
		slices.Reverse(letters)
		for i := range letters {
			pos.advance(&letters[i])
		}
		news, err := l.page(ctx, letters, began, told)
		if err != nil {
			return err
		}
		for i := range news {
			news[i].Cursor = began.String() // an interrupted poll begins again
			if next == "" && i == len(news)-1 {
				news[i].Cursor = pos.String()
			}
			if err := l.tell(ctx, *news[i]); err != nil {
				return err
			}
			if err := l.alarm(ctx, news[i], began); err != nil {
				return err
			}
		}
		if page.Cursor = next; next == "" {
			l.pos = pos
			return nil
		}
	}
}

// page makes one News for each group of some letters.
func (l *watcher) page(ctx context.Context, letters []nixie.Letter, began watchPosition, told map[string]bool) ([]*News, error) {
	groups := map[string]*News{}
	var order []*News
	for i := range letters {
		letter := &letters[i]
		n := groups[letter.Fingerprint]
		if n == nil {
			n = &News{Fingerprint: letter.Fingerprint, Signature: letter.Signature, Reason: letter.Reason}
			groups[letter.Fingerprint] = n
			order = append(order, n)
		}
		if n.Added++; len(n.Letters) < MaxNewsLetters {
			n.Letters = append(n.Letters, ViewLetter(letter))
		}
	}
	for _, n := range order {
		if !told[n.Fingerprint] {
			known, err := l.knownGroup(ctx, n, began)
			if err != nil {
				return nil, err
			}
			n.NewGroup = !known
			told[n.Fingerprint] = true
		}
	}
	return order, nil
}

// knownGroup reports whether the group had an unresolved letter before.
func (l *watcher) knownGroup(ctx context.Context, n *News, began watchPosition) (bool, error) {
	if began.died.IsZero() {
		return false, nil
	}
	f := Unresolved(nixie.Filter{Queues: l.filter.Queues, Fingerprints: []string{n.Fingerprint}})
	f.Died.Before = began.died
	older, err := l.latest(ctx, f)
	if err != nil || older != nil {
		return older != nil, err
	}
	f.Died = nixie.Times{After: began.died, Before: began.died.Add(time.Nanosecond)}
	for letter, err := range l.AllLetters(ctx, f, false) {
		if err != nil || began.covers(&letter) {
			return err == nil, err
		}
	}
	groups, err := l.olderGroups(ctx, began)
	return groups[n.Fingerprint], err
}

// Limits of what a watch reads once of earlier builds: the largest groups, and the latest letters
// of these.
const (
	maxOlderGroups = 1000
	mostOlder      = 10_000
)

// olderGroups returns the groups, as this build names them, of unresolved letters whose
// fingerprints an earlier build made: an update alone makes no group new. They are read once in a
// watch.
func (l *watcher) olderGroups(ctx context.Context, began watchPosition) (map[string]bool, error) {
	if l.older != nil {
		return l.older, nil
	}
	groups, _, err := l.store.Count(ctx, nixie.Filter{Queues: l.filter.Queues}, store.Counting{By: []store.GroupBy{store.ByFingerprint}})
	if err != nil {
		return nil, err
	}
	f := Unresolved(nixie.Filter{Queues: l.filter.Queues})
	for _, g := range groups[0] {
		if policy.Outdated(g.Key) && len(f.Fingerprints) < maxOlderGroups {
			f.Fingerprints = append(f.Fingerprints, g.Key)
		}
	}
	older := map[string]bool{}
	if len(f.Fingerprints) > 0 {
		f.Died.Before = began.died.Add(time.Nanosecond)
		left := mostOlder
		for letter, err := range l.AllLetters(ctx, f, true) {
			if err != nil {
				return nil, err
			}
			_, group := policy.GroupOf(&letter)
			older[group] = true
			if left--; left == 0 {
				break
			}
		}
	}
	l.older = older
	return older, nil
}
