package runner

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/store"
)

// Types of the messages of a job.
const (
	typeItem = "item"     // the body is JSON
	typeLine = "line"     // the body is a plain line
	typeBad  = "bad-item" // the body is what could not be read
)

// Headers of the messages of a job.
const (
	headerLine  = "item-line"  // where the item stood in its list
	headerError = "item-error" // what was wrong with a bad one
)

const (
	intakeBatch = 1000    // items enqueued in one call
	intakeBytes = 8 << 20 // bytes of their bodies
)

// Intake is what taking a list in did.
type Intake struct {
	Items int64 // of the list
	Added int64 // new to the job
	Known int64 // the job had them already
	Bad   int64 // unreadable, to be dead-lettered as they are
}

// Intake enqueues the items of the list that the job does not know. The whole
// list is checked first: an error of the list enqueues nothing.
func (r *Runner) Intake(ctx context.Context) (Intake, error) {
	reader, err := items.Open(r.c.Items)
	if err != nil {
		return Intake{}, err
	}
	defer reader.Close() //nolint:errcheck // it was only read
	if _, err := reader.Check(); err != nil {
		return Intake{}, err
	}
	fresh, err := r.prepareQueue(ctx)
	if err != nil {
		return Intake{}, err
	}
	in := intake{r: r, reader: reader, kind: typeItem}
	if reader.Format() == items.Lines {
		in.kind = typeLine
	}
	if !fresh {
		if err := in.each(ctx, in.checkKnown); err != nil {
			return Intake{}, err
		}
		if err := reader.Rewind(); err != nil {
			return Intake{}, err
		}
	}
	err = in.each(ctx, in.enqueue)
	return in.done, err
}

// prepareQueue makes items unique for as long as the job is kept and takes a
// halt back that an earlier run left. It reports whether the job is new.
func (r *Runner) prepareQueue(ctx context.Context) (fresh bool, err error) {
	q, known, err := r.queue(ctx)
	if err != nil {
		return false, err
	}
	settings := q.Settings
	if settings.Paused && !r.halted(settings) {
		return false, nixie.Errorf(nixie.CodeConflict, "job %s is paused (%s): resume it first", r.c.Job, settings.PausedNote)
	}
	settings.Paused, settings.PausedNote = false, ""
	settings.DedupeScope = nixie.DedupeEver
	if !known || settings != q.Settings {
		err = r.c.Store.Configure(ctx, r.c.Job, settings, r.c.Owner, "nixie run")
	}
	return !known, err
}

func (r *Runner) queue(ctx context.Context) (nixie.QueueInfo, bool, error) {
	queues, err := r.c.Store.Queues(ctx)
	if err != nil {
		return nixie.QueueInfo{}, false, err
	}
	for _, q := range queues {
		if q.Name == r.c.Job {
			return q, true, nil
		}
	}
	return nixie.QueueInfo{Name: r.c.Job}, false, nil
}

type intake struct {
	r      *Runner
	reader *items.Reader
	kind   string
	done   Intake
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

// checkKnown refuses items that the job knows with other content.
func (in *intake) checkKnown(ctx context.Context, batch []items.Item) error {
	byKey := make(map[string]*items.Item, len(batch))
	filter := nixie.Filter{Queues: []string{in.r.c.Job}}
	for i := range batch {
		byKey[batch[i].ID] = &batch[i]
		filter.Keys = append(filter.Keys, batch[i].ID)
	}
	known, _, err := in.r.c.Store.Messages(ctx, filter, store.Page{Limit: 2 * intakeBatch})
	if err != nil {
		return err
	}
	for i := range known {
		item := byKey[known[i].Key]
		if nixie.HashBody(item.Body) == known[i].Hash {
			continue
		}
		return nixie.Errorf(nixie.CodeInvalid,
			"item %q in line %d differs from the one that job %s took from line %s: give it another id, or another --job; nothing was enqueued",
			item.ID, item.Line, in.r.c.Job, known[i].Header(headerLine))
	}
	return nil
}

// enqueue adds a batch; what the job knows stays as it is.
func (in *intake) enqueue(ctx context.Context, batch []items.Item) error {
	messages := make([]nixie.Message, len(batch))
	for i := range batch {
		messages[i] = in.message(&batch[i])
	}
	receipts, err := in.r.c.Store.Enqueue(ctx, messages...)
	if err != nil {
		return err
	}
	for i, receipt := range receipts {
		in.done.Items++
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

func (in *intake) message(item *items.Item) nixie.Message {
	m := nixie.Message{
		Queue: in.r.c.Job, Type: in.kind, Key: item.ID, DedupeKey: item.ID, Body: item.Body,
		Headers: []nixie.Header{{Name: headerLine, Value: strconv.Itoa(item.Line)}},
	}
	if item.Bad != nil {
		m.Type = typeBad
		m.Headers = append(m.Headers, nixie.Header{Name: headerError, Value: item.Bad.Error()})
	}
	return m
}
