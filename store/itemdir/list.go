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
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/store"
)

// cursor returns the cursor after an item.
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
		return h, store.BadCursor(cursor)
	}
	return h, nil
}

// quickly splits a filter into the fields that a shell answers and the fields that need the file.
func quickly(f *nixie.Filter) (quick, rest nixie.Filter) {
	quick = nixie.Filter{
		IDs: f.IDs, Statuses: f.Statuses, States: f.States, Causes: f.Causes, Queues: f.Queues, Types: f.Types,
		Keys: f.Keys, Age: f.Age, Died: f.Died,
	}
	rest = *f
	rest.IDs, rest.Statuses, rest.States, rest.Causes, rest.Queues, rest.Types = nil, nil, nil, nil, nil, nil
	rest.Keys, rest.Age, rest.Died = nil, nixie.Durations{}, nixie.Times{}
	return quick, rest
}

// match yields the items that match a filter, with their letters. It reads blocks of files in
// parallel, but for those that are known.
func (s *Store) match(
	ctx context.Context, heads []head, f *nixie.Filter, as reader, known counts,
) iter.Seq2[*head, *nixie.Letter] {
	quick, rest := quickly(f)
	now := s.clock()
	return func(yield func(*head, *nixie.Letter) bool) {
		open := folders{}
		defer open.close()
		for at := 0; at < len(heads) && ctx.Err() == nil; {
			block := make([]*head, 0, ahead)
			for ; at < len(heads) && len(block) < ahead; at++ {
				if shell := heads[at].shell(); filter.MatchLetter(&quick, &shell, now) {
					block = append(block, &heads[at])
					open.open(s.dir, heads[at].list)
				}
			}
			letters, there := make([]nixie.Letter, len(block)), make([]bool, len(block))
			inParallel(ctx, len(block), func() func(int) {
				return func(i int) {
					if letters[i], there[i] = known.letter(block[i]); !there[i] {
						letters[i], there[i] = s.letter(block[i], open[block[i].list], as)
					}
				}
			})
			for i := range letters {
				if there[i] && filter.MatchLetter(&rest, &letters[i], now) && !yield(block[i], &letters[i]) {
					return
				}
			}
		}
	}
}

// ahead is the size of a block. The caller may need fewer letters.
const ahead = 64

// begin scans the folder for the first page of a listing, and returns the items of that scan for
// the other pages.
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
	limit := page.Rows()
	as := reader(itemfile.ReadFast)
	if page.Whole {
		as = itemfile.Read
	}
	var letters []nixie.Letter
	var last *head
	for h, l := range s.match(ctx, heads, &filter, as, nil) {
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

// each calls do for all matching letters, latest death first, without their history and bodies.
func (s *Store) each(ctx context.Context, f *nixie.Filter, do func(*nixie.Letter)) error {
	heads, err := s.begin(ctx, "")
	if err != nil {
		return err
	}
	var known counts
	if _, rest := quickly(f); rest.IsZero() {
		known = s.known()
	}
	read := counts{}
	for h, l := range s.match(ctx, heads, f, itemfile.ReadFast, known) {
		do(l)
		read.add(h, l)
	}
	if err := ended(ctx); err != nil {
		return err
	}
	s.keep(read)
	return nil
}

// Count implements [store.DeadLetters]. It always scans all items. No message retries here.
func (s *Store) Count(ctx context.Context, filter nixie.Filter, c store.Counting) ([][]store.Group, store.Coverage, error) {
	if err := c.Check(); err != nil {
		return nil, store.Coverage{}, err
	}
	counted := store.NewGrouping(c)
	if c.Retrying {
		return counted.Groups(), store.Coverage{}, nil
	}
	err := s.each(ctx, &filter, counted.Add)
	return counted.Groups(), store.Coverage{}, err
}

// Queues implements [store.Queue]: a queue for each job.
func (s *Store) Queues(ctx context.Context, look store.QueueQuery) ([]store.QueueInfo, error) {
	heads, err := s.begin(ctx, "")
	if err != nil {
		return nil, err
	}
	var jobs []store.QueueInfo
	hour := s.clock().Add(-time.Hour).UnixNano()
	for _, h := range heads {
		if look.Names != nil && !slices.Contains(look.Names, h.queue()) {
			continue
		}
		at, found := slices.BinarySearchFunc(jobs, h.queue(), func(q store.QueueInfo, name string) int { return cmp.Compare(q.Name, name) })
		if !found {
			jobs = slices.Insert(jobs, at, store.QueueInfo{Name: h.queue()})
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

// Features returns Check.
func (s *Store) Features() store.Features { return store.Features{Check: s.Check} }

// Check reports the items that cannot be read.
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
