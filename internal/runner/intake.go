package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/store"
)

// Types of the messages of a job.
const (
	typeItem = "item"         // the body is JSON
	typeLine = items.TypeLine // the body is a plain line
	typeBad  = "bad-item"     // the body is unreadable
)

// Headers of the messages of a job.
const (
	headerLine  = items.HeaderLine
	headerError = "item-error" // the error of a bad item
)

const (
	intakeBatch = 1000    // items enqueued in one call
	intakeBytes = 8 << 20 // bytes of their bodies
)

// Intake counts the items that a list brought.
type Intake struct {
	Items int64 // of the list
	Added int64 // new to the job
	Known int64 // that the job had already
	Bad   int64 // unreadable; they become dead letters as they are
	Empty int64 // rows of a table without a value, which were skipped

	LeftOut int64 // items with fields that do not fit the environment of their command
}

// OpenList opens a list and checks it to the end, before any store is touched. It returns when ctx
// ends, even if the list is a pipe or terminal without input. The goroutine that reads it then ends
// with the process.
func OpenList(ctx context.Context, opts items.Options) (*items.Reader, error) {
	type opened struct {
		reader *items.Reader
		err    error
	}
	got := make(chan opened, 1)
	go func() {
		reader, err := items.Open(opts)
		if err == nil {
			if _, err = reader.Check(); err != nil {
				_ = reader.Close() // it was only read
			}
		}
		got <- opened{reader, err}
	}()
	select {
	case o := <-got:
		return o.reader, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("interrupted while the list was read, nothing was enqueued: %w", context.Cause(ctx))
	}
}

// Intake enqueues the items of a checked list that the job does not have. If an item differs from
// the one that the job has under its ID, it enqueues nothing; likewise if accept returns an error,
// which is called once before.
func (r *Runner) Intake(ctx context.Context, list *items.Reader, accept func(Leftovers) error) (Intake, error) {
	q, isNew, err := r.prepareQueue(ctx)
	if err != nil {
		return Intake{}, err
	}
	in := intake{r: r, reader: list, kind: typeItem}
	if list.Format() == items.Lines {
		in.kind = typeLine
	}
	var left Leftovers
	if !isNew {
		if err := in.each(ctx, in.checkKnown); err != nil {
			return Intake{}, err
		}
		if left, err = in.leftovers(ctx, q.Unfinished()); err != nil {
			return Intake{}, err
		}
		if err := list.Rewind(); err != nil {
			return Intake{}, err
		}
	}
	if err := accept(left); err != nil {
		return Intake{}, err
	}
	err = in.each(ctx, in.enqueue)
	in.done.Empty = list.Empty()
	return in.done, err
}

// Add enqueues one item, unless the job has had it.
func (r *Runner) Add(ctx context.Context, key, id string, body []byte) error {
	if _, _, err := r.prepareQueue(ctx); err != nil {
		return err
	}
	_, err := r.store.Enqueue(ctx, nixie.Message{
		Queue: r.c.Job, Type: typeItem, Key: key, DedupeKey: id, Body: body, Headers: r.headers,
	})
	return err
}

// Resume prepares a job whose items are in the store, as [Runner.Intake] does for a list.
func (r *Runner) Resume(ctx context.Context) error {
	_, known, err := r.queue(ctx)
	switch {
	case err != nil:
		return err
	case !known:
		return nixie.Errorf(nixie.CodeNotFound, "the store has no items of job %s: begin it with its list", r.c.Job)
	}
	_, _, err = r.prepareQueue(ctx)
	return err
}

// prepareQueue makes items unique for as long as the job is kept, and resumes a queue that an
// earlier run halted. It returns the queue as it was, and whether the job is new.
func (r *Runner) prepareQueue(ctx context.Context) (q store.QueueInfo, isNew bool, err error) {
	q, known, err := r.queue(ctx)
	if err != nil {
		return q, false, err
	}
	settings := q.Settings
	if settings.Paused && !r.halted(settings) {
		return q, false, nixie.Errorf(nixie.CodeConflict, "job %s is paused (%s): resume it first", r.c.Job, settings.PausedNote)
	}
	settings.Paused, settings.PausedNote, settings.PausedAt = false, "", time.Time{}
	settings.DedupeScope = nixie.DedupeEver
	if settings.Retention == 0 { // an item that was forgotten would run again
		settings.Retention = nixie.Forever
	}
	if !known || settings != q.Settings {
		err = store.Configure(ctx, r.store, r.c.Job, settings, r.c.Owner, "nixie run")
	}
	return q, !known, err
}

func (r *Runner) queue(ctx context.Context) (store.QueueInfo, bool, error) {
	known, err := r.queues(ctx)
	if err != nil || len(known) == 0 {
		return store.QueueInfo{Name: r.c.Job}, false, err
	}
	return known[0], true, nil
}

// queues returns those of the runner's queues that the store has.
func (r *Runner) queues(ctx context.Context) ([]store.QueueInfo, error) {
	return r.store.Queues(ctx, store.QueueQuery{Names: append([]string{}, r.c.Queues...)}) // no names are no queues, not all
}

type intake struct {
	r      *Runner
	reader *items.Reader
	kind   string
	done   Intake

	unfinished int64 // items of the list that the job had, and that had not ended
}

// each calls f with the items of the list in batches.
func (in *intake) each(ctx context.Context, f func(context.Context, []items.Item) error) error {
	batch, size := make([]items.Item, 0, intakeBatch), 0
	for {
		item, err := in.reader.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := err != nil
		if !end {
			batch, size = append(batch, item), size+len(item.Body)
		}
		if len(batch) > 0 && (end || len(batch) == intakeBatch || size >= intakeBytes) {
			if err := f(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
		if end {
			return nil
		}
	}
}

// checkKnown refuses items that the job has with other content.
func (in *intake) checkKnown(ctx context.Context, batch []items.Item) error {
	byKey := make(map[string]*items.Item, len(batch))
	filter := nixie.Filter{Queues: []string{in.r.c.Job}}
	for i := range batch {
		byKey[batch[i].ID] = &batch[i]
		filter.Keys = append(filter.Keys, batch[i].ID)
	}
	page := store.Page{Limit: 2 * intakeBatch}
	for {
		known, next, err := in.r.store.Messages(ctx, filter, page)
		if err != nil {
			return err
		}
		for i := range known {
			item := byKey[idOf(&known[i])]
			if item == nil {
				continue
			}
			if state := known[i].State; state == nixie.Queued || state == nixie.Leased {
				in.unfinished++
			}
			if nixie.HashBody(item.Body) != known[i].Hash {
				return in.differs(item, known[i].Header(headerLine), "nothing was enqueued")
			}
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}

// differs names the line of an item and of the different one that the job has under its ID.
func (in *intake) differs(item *items.Item, line, outcome string) error {
	origin := "another producer enqueued"
	if line != "" {
		origin = "it took from line " + line
	}
	return nixie.Errorf(nixie.CodeInvalid,
		"item %q in line %d differs from the one that job %s has by that ID, which %s: %s; give it another ID, or another --job",
		item.ID, item.Line, in.r.c.Job, origin, outcome)
}

// enqueue adds a batch; items that the job has stay as they are.
func (in *intake) enqueue(ctx context.Context, batch []items.Item) error {
	messages := make([]nixie.Message, len(batch))
	for i := range batch {
		messages[i] = in.message(&batch[i])
	}
	receipts, err := in.r.store.Enqueue(ctx, messages...)
	if err != nil {
		return err
	}
	for i, receipt := range receipts {
		if receipt.Different { // another run took its list in at the same time
			return in.differs(&batch[i], "", "what came before it in the list was enqueued")
		}
		in.done.Items++
		if in.leavesOut(&batch[i]) {
			in.done.LeftOut++
		}
		if receipt.Duplicate {
			in.done.Known++
			continue
		}
		in.done.Added++
		if batch[i].Bad != nil {
			in.done.Bad++
		}
	}
	return nil
}

// leavesOut reports whether fields of an item do not fit the environment of its command. Of small
// items only the first can have such fields that the others do not have: two of one name.
func (in *intake) leavesOut(item *items.Item) bool {
	if item.Bad != nil || item.IsLine() || !mayLeaveOut(item.Body) && in.done.Items > 1 {
		return false
	}
	return command.LeftOut(fieldsOf(items.OpenStored(item.Body, false))) > 0
}

// mayLeaveOut reports whether an item is large, or has a zero byte, so that fields may not fit.
func mayLeaveOut(body []byte) bool {
	return len(body) >= command.MaxVariable || bytes.Contains(body, []byte(`\u0000`))
}

// LeftOutText says of items or messages that fields of theirs do not fit.
func LeftOutText(whose string) string {
	return fmt.Sprintf("fields of %s do not fit the environment of a command and are left out there: it takes %d KiB a field, "+
		"%d KiB an item,\nno zero bytes, and one field of a name; the whole item is on standard input",
		whose, command.MaxVariable>>10, command.MaxFields>>10)
}

// tellLeftOut tells of the first message with fields that do not fit. Items of a job are told when
// they are taken in.
func (r *Runner) tellLeftOut(d *nixie.Delivery, fields []command.Field) {
	if r.c.Job == "" && mayLeaveOut(d.Body) && command.LeftOut(fields) > 0 {
		r.leftOut.Do(func() { r.c.Warn("%s", LeftOutText("message "+d.ID.String()+", and of others like it,")) })
	}
}

func (in *intake) message(item *items.Item) nixie.Message {
	m := nixie.Message{
		Queue: in.r.c.Job, Type: in.kind, Key: item.Name, DedupeKey: item.ID, Body: item.Body,
		Headers: append([]nixie.Header{{Name: headerLine, Value: strconv.Itoa(item.Line)}}, in.r.headers...),
	}
	if item.Bad != nil {
		m.Type = typeBad
		m.Headers = append(m.Headers, nixie.Header{Name: headerError, Value: item.Bad.Error()})
	}
	return m
}
