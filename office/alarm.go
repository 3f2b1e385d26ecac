package office

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Waits before an alarm that failed is called again: the first one, doubled up to the longest.
const (
	firstAlarmWait   = time.Second
	longestAlarmWait = 5 * time.Minute
)

// maxOwed limits the groups whose alarms failed. With more, a watch polls no further until one
// succeeds.
const maxOwed = 500

// watchState holds what a watch with a name keeps in the store, as JSON.
type watchState struct {
	Cursor string // all new groups before it were told, or are owed
	Owed   []owed
}

// owed is a new group whose alarm failed.
type owed struct {
	Fingerprint string
	Since       string // position of the watch before its first letter
}

// alarms calls the alarm of a watch, and remembers the groups for which it failed.
type alarms struct {
	call func(context.Context, News) error // nil: there is none
	owed []owed                            // the one that waits longest first
	wait time.Duration                     // before the next try, 0 while none has failed
	next time.Time                         // when that is

	name string // "": nothing is kept
	kept string // state in the store
}

// spaceOfWatches has a document for each watch with a name: how far it has come.
const spaceOfWatches = "watch"

// resume goes on where a watch of that name ended, and reports whether there was one.
func (l *watcher) resume(ctx context.Context, cursor string) (known bool, err error) {
	docs := l.store.Features().Documents
	if l.name == "" || docs == nil {
		l.name = ""
		return false, nil
	}
	found, _, err := docs.Find(ctx, store.DocumentQuery{Space: spaceOfWatches, Key: l.name}, store.Page{})
	if err != nil || len(found) == 0 {
		return false, err
	}
	l.kept = string(found[0].Value)
	var state watchState
	if err := json.Unmarshal([]byte(l.kept), &state); err != nil {
		return false, nixie.Errorf(nixie.CodeInternal, "state of watcher %q: %w", l.name, err)
	}
	l.owed = state.Owed
	if cursor == "" {
		l.pos, err = parseWatchPosition(state.Cursor)
	}
	return true, err
}

// keep saves the state of a watch with a name, if it changed.
func (l *watcher) keep(ctx context.Context) error {
	if l.name == "" {
		return nil
	}
	state, err := json.Marshal(watchState{l.pos.String(), l.owed})
	if err != nil || string(state) == l.kept {
		return err
	}
	if _, err := l.store.Features().Documents.Write(ctx, store.Writing{Changes: []store.DocumentChange{{
		DocumentKey: store.DocumentKey{Space: spaceOfWatches, Key: l.name}, Verb: store.PutDocument, If: store.AnyRevision, Value: state,
	}}}); err != nil {
		return err
	}
	l.kept = string(state)
	return nil
}

// alarm calls the alarm for a new group. One that fails is owed.
func (l *watcher) alarm(ctx context.Context, n *News, since watchPosition) error {
	if l.call == nil || !n.NewGroup {
		return nil
	}
	same := func(o owed) bool { return o.Fingerprint == n.Fingerprint }
	err := l.call(ctx, *n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		l.owed = slices.DeleteFunc(l.owed, same)
		l.wait, l.next = 0, time.Time{} // what is owed may succeed now
	case !slices.ContainsFunc(l.owed, same):
		l.owed = append(l.owed, owed{n.Fingerprint, since.String()})
		l.later()
	}
	return nil
}

// later puts the next try off.
func (l *watcher) later() {
	l.wait = min(max(2*l.wait, firstAlarmWait), longestAlarmWait)
	l.next = l.clock().Add(l.wait)
}

// alarmAgain calls the alarm for owed groups until one fails, which is the last one next time. A
// group that has no unresolved letter any more is told no more.
func (l *watcher) alarmAgain(ctx context.Context) error {
	for len(l.owed) > 0 && !l.clock().Before(l.next) {
		first := l.owed[0]
		since, err := parseWatchPosition(first.Since)
		if err != nil {
			return err
		}
		news, err := l.owing(ctx, first.Fingerprint, since)
		if err != nil {
			return err
		}
		for _, n := range news {
			n.Cursor = l.pos.String()
			if err = l.call(ctx, *n); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		l.owed = l.owed[1:]
		if err != nil {
			l.owed = append(l.owed, first)
			l.later()
			return nil
		}
		l.wait, l.next = 0, time.Time{}
	}
	return nil
}

// owing returns what is unresolved since then of a group whose alarm failed. If a regroup has moved
// that, it returns all groups that were new then.
func (l *watcher) owing(ctx context.Context, fingerprint string, since watchPosition) ([]*News, error) {
	of := []string{fingerprint}
	for {
		f := l.since(since)
		f.Fingerprints = of
		letters, _, err := l.store.Letters(ctx, f, store.Page{Limit: step})
		if err != nil {
			return nil, err
		}
		letters = slices.DeleteFunc(letters, func(letter nixie.Letter) bool { return since.covers(&letter) })
		slices.Reverse(letters)
		if len(letters) == 0 && of != nil && policy.Outdated(fingerprint) {
			of = nil
			continue
		}
		news, err := l.page(ctx, letters, since, map[string]bool{fingerprint: true})
		return slices.DeleteFunc(news, func(n *News) bool {
			n.NewGroup = n.NewGroup || n.Fingerprint == fingerprint
			return !n.NewGroup
		}), err
	}
}

// look tells what is owed and what is new, and keeps how far it came.
func (l *watcher) look(ctx context.Context) error {
	if err := l.alarmAgain(ctx); err != nil {
		return err
	}
	if len(l.owed) < maxOwed {
		if err := l.poll(ctx); err != nil {
			return err
		}
	}
	return l.keep(ctx)
}

// pause returns the time until the next look.
func (l *watcher) pause(interval time.Duration) time.Duration {
	if len(l.owed) > 0 {
		interval = min(interval, max(l.next.Sub(l.clock()), MinInterval))
	}
	return interval
}
