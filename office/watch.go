package office

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Bounds of watching.
const (
	DefaultInterval = 2 * time.Second // between two looks
	MinInterval     = 100 * time.Millisecond
	MaxNewsLetters  = 5 // letters that one piece of news names
)

// WatchRequest is how new letters are followed.
type WatchRequest struct {
	Filter   nixie.Filter  // letters that are meant; without statuses the unresolved ones
	Cursor   string        // go on where an earlier watch ended; empty begins as FromNow says
	FromNow  bool          // begin with what dies from now on, and not with all there is
	Once     bool          // look once
	Interval time.Duration // between looks; 0 is [DefaultInterval]
	Until    time.Time     // look no more after it; zero is until ctx ends

	Wait func(ctx context.Context, d time.Duration) error // default a timer
}

// News is what came to one group of letters since the look before.
type News struct {
	NewGroup    bool         `json:"new_group"` // no older letter of the group is unresolved
	Fingerprint string       `json:"fingerprint"`
	Signature   string       `json:"signature"`
	Reason      nixie.Reason `json:"reason"`
	Added       int64        `json:"added"`   // letters that are new, or died again
	Letters     []LetterView `json:"letters"` // the oldest of them, at most [MaxNewsLetters]
	Cursor      string       `json:"cursor"`  // to go on behind it
}

// Watch looks for new letters again and again and tells each group of them,
// oldest death first, until ctx or w.Until ends, which is no error, or tell has
// one. It returns the cursor of what was told.
func (o *Office) Watch(ctx context.Context, w WatchRequest, tell func(context.Context, News) error) (cursor string, err error) {
	switch {
	case w.Interval == 0:
		w.Interval = DefaultInterval
	case w.Interval < MinInterval:
		return "", nixie.Errorf(nixie.CodeInvalid, "interval is %s: give at least %s", w.Interval, MinInterval)
	}
	if w.Wait == nil {
		w.Wait = wait
	}
	l := &lookout{Office: o, filter: Unresolved(w.Filter), tell: tell}
	if l.at, err = parseWatchPlace(w.Cursor); err != nil {
		return "", err
	}
	if w.FromNow && w.Cursor == "" {
		if err := l.skip(ctx); err != nil {
			return "", ended(ctx, err)
		}
	}
	for {
		if err := l.look(ctx); err != nil {
			return l.at.String(), ended(ctx, err)
		}
		if w.Once || !w.Until.IsZero() && !o.clock().Add(w.Interval).Before(w.Until) {
			return l.at.String(), nil
		}
		if err := w.Wait(ctx, w.Interval); err != nil {
			return l.at.String(), ended(ctx, err)
		}
	}
}

// ended drops the error that a call got because its context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchPlace is how far a watch has come: the newest death that was seen, and
// which letters died at that moment. As text it names the highest of them.
type watchPlace struct {
	died time.Time
	last nixie.ID
	seen []nixie.ID // in this process
}

func (p watchPlace) String() string {
	if p.died.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%s", p.died.UnixNano(), p.last)
}

func parseWatchPlace(cursor string) (p watchPlace, err error) {
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

// knows reports whether a letter was seen as it is.
func (p *watchPlace) knows(l *nixie.Letter) bool {
	if !l.DiedAt.Equal(p.died) {
		return l.DiedAt.Before(p.died)
	}
	return slices.Contains(p.seen, l.ID) || len(p.seen) == 0 && compareIDs(l.ID, p.last) <= 0
}

func compareIDs(a, b nixie.ID) int { return slices.Compare(a[:], b[:]) }

// sees notes a letter.
func (p *watchPlace) sees(l *nixie.Letter) {
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

// lookout is a watch in progress.
type lookout struct {
	*Office
	filter nixie.Filter
	tell   func(context.Context, News) error
	at     watchPlace
}

// since is the filter for letters that died at the place or later.
func (l *lookout) since(p watchPlace) nixie.Filter {
	f := l.filter
	if f.Died.After.Before(p.died) {
		f.Died.After = p.died
	}
	return f
}

// skip puts the place behind everything that is there.
func (l *lookout) skip(ctx context.Context) error {
	newest, err := l.latest(ctx, l.filter)
	if err != nil || newest == nil {
		return err
	}
	l.at = watchPlace{died: newest.DiedAt, last: newest.ID}
	for letter, err := range l.AllLetters(ctx, l.since(l.at), false) {
		if err != nil {
			return err
		}
		l.at.sees(&letter)
	}
	return nil
}

// look tells what is new, page by page: within a page the oldest death first. A
// look that has more than a page to tell, after a long pause, tells the newest
// page first, in flat memory.
func (l *lookout) look(ctx context.Context) error {
	began, told := l.at, map[string]bool{}
	place := watchPlace{died: began.died, last: began.last, seen: slices.Clone(began.seen)}
	page := store.Page{Limit: step}
	for {
		letters, next, err := l.store.Letters(ctx, l.since(began), page)
		if err != nil {
			return err
		}
		letters = slices.DeleteFunc(letters, func(letter nixie.Letter) bool { return began.knows(&letter) })
		slices.Reverse(letters)
		for i := range letters {
			place.sees(&letters[i])
		}
		news, err := l.page(ctx, letters, began, told)
		if err != nil {
			return err
		}
		for i := range news {
			news[i].Cursor = began.String() // an interrupted look is begun again
			if next == "" && i == len(news)-1 {
				news[i].Cursor = place.String()
			}
			if err := l.tell(ctx, *news[i]); err != nil {
				return err
			}
		}
		if page.Cursor = next; next == "" {
			l.at = place
			return nil
		}
	}
}

// page makes news of some letters, one for each group.
func (l *lookout) page(ctx context.Context, letters []nixie.Letter, began watchPlace, told map[string]bool) ([]*News, error) {
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
			known, err := l.known(ctx, n, began)
			if err != nil {
				return nil, err
			}
			n.NewGroup = !known
			told[n.Fingerprint] = true
		}
	}
	return order, nil
}

// known reports whether an unresolved letter of the group was there before.
func (l *lookout) known(ctx context.Context, n *News, began watchPlace) (bool, error) {
	if began.died.IsZero() {
		return false, nil
	}
	f := Unresolved(nixie.Filter{Queues: l.filter.Queues, Fingerprint: n.Fingerprint})
	f.Died.Before = began.died
	older, err := l.latest(ctx, f)
	if err != nil || older != nil {
		return older != nil, err
	}
	f.Died = nixie.Times{After: began.died, Before: began.died.Add(time.Nanosecond)}
	for letter, err := range l.AllLetters(ctx, f, false) {
		if err != nil || began.knows(&letter) {
			return err == nil, err
		}
	}
	return false, nil
}
