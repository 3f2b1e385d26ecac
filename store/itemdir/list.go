package itemdir

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/store"
)

// Bounds of a page.
const (
	defaultPage = 50
	maxPage     = 10_000
)

// cursor names the last item of a page.
func (h *head) cursor() string {
	return strconv.FormatInt(h.died, 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(h.file()))
}

func parseCursor(cursor string) (h head, err error) {
	var name string
	_, err = fmt.Sscanf(cursor, "%d.%s", &h.died, &name)
	if err == nil {
		var file []byte
		file, err = base64.RawURLEncoding.DecodeString(name)
		h.list, h.name = &list{path: path.Dir(string(file))}, path.Base(string(file))
	}
	if err != nil || h.cursor() != cursor {
		return h, nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not from an earlier page of this listing: start without one", cursor)
	}
	return h, nil
}

// quickly splits a filter: what a shell answers, and what only the file does.
func quickly(f *nixie.Filter) (quick, rest nixie.Filter) {
	quick = nixie.Filter{
		IDs: f.IDs, Statuses: f.Statuses, States: f.States, Causes: f.Causes, Queues: f.Queues, Types: f.Types,
		Keys: f.Keys, Age: f.Age, Died: f.Died,
	}
	rest = *f
	rest.IDs, rest.Statuses, rest.States, rest.Causes, rest.Queues, rest.Types = nil, nil, nil, nil, nil, nil
	rest.Keys, rest.Age, rest.Died = nil, nixie.Span{}, nixie.Times{}
	return quick, rest
}

// match yields the items that a filter matches, with their letters. It reads some ahead,
// several at once.
func (s *Store) match(ctx context.Context, heads []head, f *nixie.Filter, as reader) iter.Seq2[*head, *nixie.Letter] {
	quick, rest := quickly(f)
	now := s.clock()
	return func(yield func(*head, *nixie.Letter) bool) {
		for at := 0; at < len(heads) && ctx.Err() == nil; {
			block := make([]*head, 0, ahead)
			for ; at < len(heads) && len(block) < ahead; at++ {
				if shell := heads[at].shell(); quick.MatchLetter(&shell, now) {
					block = append(block, &heads[at])
				}
			}
			letters, there := make([]nixie.Letter, len(block)), make([]bool, len(block))
			inParallel(ctx, len(block), func() func(int) {
				return func(i int) { letters[i], there[i] = s.letter(block[i], as) }
			})
			for i := range letters {
				if there[i] && rest.MatchLetter(&letters[i], now) && !yield(block[i], &letters[i]) {
					return
				}
			}
		}
	}
}

// ahead is how many items are read before it is known whether somebody wants them.
const ahead = 64

// begin looks at the folder anew at the first page of a listing, and goes on with what
// was seen then at others.
func (s *Store) begin(ctx context.Context, cursor string) ([]head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cursor == "" || s.heads == nil {
		heads, err := s.scan(ctx)
		if err != nil {
			return nil, err
		}
		s.heads = heads
	}
	if cursor == "" {
		return s.heads, nil
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, err
	}
	at, found := slices.BinarySearchFunc(s.heads, after, newestFirst)
	if found {
		at++
	}
	return s.heads[at:], nil
}

// Letters implements [store.DeadLetters].
func (s *Store) Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	heads, err := s.begin(ctx, page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := min(cmp.Or(max(page.Limit, 0), defaultPage), maxPage)
	as := reader(itemfile.Glance)
	if page.Whole {
		as = itemfile.Read
	}
	var letters []nixie.Letter
	var last *head
	for h, l := range s.match(ctx, heads, &filter, as) {
		if len(letters) == limit {
			return letters, last.cursor(), ended(ctx)
		}
		if !page.Whole {
			l.History, l.Artifacts = nil, nil
			if !page.Bodies {
				l.Message.Body = nil
			}
		}
		letters, last = append(letters, *l), h
	}
	return letters, "", ended(ctx)
}

func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "items: %w", err)
	}
	return nil
}

// each calls do for all letters that match, latest death first.
func (s *Store) each(ctx context.Context, filter *nixie.Filter, do func(*nixie.Letter)) error {
	heads, err := s.begin(ctx, "")
	if err != nil {
		return err
	}
	for _, l := range s.match(ctx, heads, filter, itemfile.Glance) {
		do(l)
	}
	return ended(ctx)
}

// examples is how many letters of a group are named.
const examples = 3

// Groups implements [store.DeadLetters]. It always looks at all.
func (s *Store) Groups(ctx context.Context, filter nixie.Filter, _ store.Look, by nixie.GroupBy) ([]nixie.Group, store.Looked, error) {
	if _, ok := groupKey(&nixie.Letter{}, by); !ok {
		return nil, store.Looked{}, unknownGrouping(by)
	}
	groups := map[string]*nixie.Group{}
	err := s.each(ctx, &filter, func(l *nixie.Letter) {
		key, _ := groupKey(l, by)
		g := groups[key]
		if g == nil {
			g = &nixie.Group{Key: key, LastAt: l.DiedAt}
			if by == nixie.ByFingerprint {
				g.Label, g.Reason = l.Signature, l.Reason
			}
			groups[key] = g
		}
		g.Count++
		g.FirstAt = l.DiedAt
		if len(g.Examples) < examples {
			g.Examples = append(g.Examples, l.ID)
		}
	})
	sorted := make([]nixie.Group, 0, len(groups))
	for _, g := range groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b nixie.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return sorted, store.Looked{}, err
}

// Counts implements [store.DeadLetters]. It always looks at all.
func (s *Store) Counts(ctx context.Context, filter nixie.Filter, _ store.Look, by ...nixie.GroupBy) ([]map[string]int64, store.Looked, error) {
	counts := make([]map[string]int64, len(by))
	for i, g := range by {
		if _, ok := groupKey(&nixie.Letter{}, g); !ok {
			return nil, store.Looked{}, unknownGrouping(g)
		}
		counts[i] = map[string]int64{}
	}
	err := s.each(ctx, &filter, func(l *nixie.Letter) {
		for i, g := range by {
			key, _ := groupKey(l, g)
			counts[i][key]++
		}
	})
	return counts, store.Looked{}, err
}

func unknownGrouping(by nixie.GroupBy) error {
	return nixie.Errorf(nixie.CodeInvalid, "letters cannot be grouped by %q: use one of those in package nixie", by)
}

func groupKey(l *nixie.Letter, by nixie.GroupBy) (key string, ok bool) {
	switch by {
	case nixie.ByFingerprint:
		return l.Fingerprint, true
	case nixie.ByReason:
		return string(l.Reason), true
	case nixie.ByClass:
		return string(l.Class), true
	case nixie.ByType:
		return l.Message.Type, true
	case nixie.ByQueue:
		return l.Message.Queue, true
	case nixie.ByStatus:
		return string(l.Status), true
	case nixie.ByHour:
		return l.DiedAt.UTC().Format("2006-01-02T15"), true
	case nixie.ByRedrivable:
		return yesNo(l.Redrivable), true
	case nixie.ByAttempts:
		return strconv.Itoa(l.Message.Attempts), true
	case nixie.ByReview:
		return yesNo(l.NeedsReview), true
	}
	return "", false
}

// yesNo is how filters write a flag.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Queues implements [store.Overview]: a queue for each job.
func (s *Store) Queues(ctx context.Context) ([]nixie.QueueInfo, error) {
	heads, err := s.begin(ctx, "")
	if err != nil {
		return nil, err
	}
	var jobs []nixie.QueueInfo
	hour := s.clock().Add(-time.Hour).UnixNano()
	for _, h := range heads {
		at, found := slices.BinarySearchFunc(jobs, h.queue(), func(q nixie.QueueInfo, name string) int { return cmp.Compare(q.Name, name) })
		if !found {
			jobs = slices.Insert(jobs, at, nixie.QueueInfo{Name: h.queue()})
		}
		q := &jobs[at]
		q.Total++
		q.Dead++
		if h.died > hour {
			q.Died++
		}
	}
	return jobs, nil
}

// Check implements [store.Keeper]: every item can be read.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	var report store.Report
	err := s.each(ctx, &nixie.Filter{}, func(l *nixie.Letter) {
		report.Checked++
		for _, text := range l.Damage {
			report.Violations = append(report.Violations, store.Violation{Rule: "item-readable", Subject: l.ID.String(), Text: text})
		}
	})
	return report, err
}
