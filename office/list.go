package office

import (
	"context"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// step is the number of rows of a page when all rows are wanted. Pages with bodies are smaller, as
// each body may have 16 MiB.
const (
	step      = 1_000
	wholeStep = 16
)

// Unresolved narrows a filter to unresolved letters, unless the filter names statuses.
func Unresolved(f nixie.Filter) nixie.Filter {
	if len(f.Statuses) == 0 {
		for _, s := range nixie.Statuses() {
			if s.Unresolved() {
				f.Statuses = append(f.Statuses, s)
			}
		}
	}
	return f
}

// Letters lists letters, latest death first, and returns the cursor of the next page.
func (o *Office) Letters(ctx context.Context, f nixie.Filter, p store.Page) ([]nixie.Letter, string, error) {
	return o.store.Letters(ctx, f, p)
}

// latest returns the letter that died last of those that match, or nil.
func (o *Office) latest(ctx context.Context, f nixie.Filter) (*nixie.Letter, error) {
	p := store.Page{Limit: 1}
	for {
		list, next, err := o.store.Letters(ctx, f, p)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			return &list[0], nil
		}
		if p.Cursor = next; next == "" {
			return nil, nil
		}
	}
}

// AllLetters yields all letters that match, latest death first. It reads page by page in constant
// memory, and does not yield letters that die meanwhile.
func (o *Office) AllLetters(ctx context.Context, f nixie.Filter, whole bool) iter.Seq2[nixie.Letter, error] {
	return all(whole, func(p store.Page) ([]nixie.Letter, string, error) { return o.store.Letters(ctx, f, p) })
}

// AllBodies is AllLetters with bodies and without histories. Where bodies are small, pages have
// four times as many letters as whole ones.
func (o *Office) AllBodies(ctx context.Context, f nixie.Filter) iter.Seq2[nixie.Letter, error] {
	return func(yield func(nixie.Letter, error) bool) {
		p := store.Page{Limit: wholeStep, Bodies: true}
		for more := true; more; more = p.Cursor != "" {
			list, next, err := o.store.Letters(ctx, f, p)
			if err != nil {
				yield(nixie.Letter{}, err)
				return
			}
			size := 0
			for _, l := range list {
				if size += len(l.Message.Body); !yield(l, nil) {
					return
				}
			}
			p.Limit, p.Cursor = wholeStep, next
			if size < smallPage {
				p.Limit = 4 * wholeStep
			}
		}
	}
}

// smallPage limits the bytes of the bodies of a page after which the next one may be longer.
const smallPage = 1 << 20

// Messages lists messages, newest first, and returns the cursor of the next page.
func (o *Office) Messages(ctx context.Context, f nixie.Filter, p store.Page) ([]store.Record, string, error) {
	return o.store.Messages(ctx, f, p)
}

// AllMessages yields all messages that match, like AllLetters.
func (o *Office) AllMessages(ctx context.Context, f nixie.Filter) iter.Seq2[store.Record, error] {
	return all(false, func(p store.Page) ([]store.Record, string, error) { return o.store.Messages(ctx, f, p) })
}

func all[T any](whole bool, page func(store.Page) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		p := store.Page{Limit: step, Whole: whole}
		if whole {
			p.Limit = wholeStep
		}
		for {
			list, next, err := page(p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range list {
				if !yield(row, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			p.Cursor = next
		}
	}
}

// Queues lists all queues by name.
func (o *Office) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return o.store.Queues(ctx, store.QueueQuery{})
}

// AllSettings lists all queues by name with their settings, and counts nothing.
func (o *Office) AllSettings(ctx context.Context) ([]store.QueueInfo, error) {
	return o.store.Queues(ctx, store.QueueQuery{Settings: true})
}

// Queue finds a queue.
func (o *Office) Queue(ctx context.Context, name string) (store.QueueInfo, error) {
	list, err := o.queues(ctx, []string{name})
	if err != nil {
		return store.QueueInfo{}, err
	}
	return list[0], nil
}

// QueueSettings reads the settings of a queue, and counts nothing.
func (o *Office) QueueSettings(ctx context.Context, name string) (nixie.QueueSettings, error) {
	found, err := o.store.Queues(ctx, store.QueueQuery{Names: []string{name}, Settings: true})
	switch {
	case err != nil:
		return nixie.QueueSettings{}, err
	case len(found) == 0:
		return nixie.QueueSettings{}, o.noQueue(name)
	}
	return found[0].Settings, nil
}

func (o *Office) noQueue(name string) error {
	return nixie.Errorf(nixie.CodeNotFound, o.wording.say("no queue is called %q: {queues} shows what there is"), name)
}

// Verify reads the whole store and reports broken invariants.
func (o *Office) Verify(ctx context.Context) (store.Report, error) {
	check := o.store.Features().Check
	if check == nil {
		return store.Report{}, nixie.Errorf(nixie.CodeUnavailable, "this store cannot be checked")
	}
	return check(ctx)
}
