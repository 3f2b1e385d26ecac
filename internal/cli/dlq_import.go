package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/office"
)

// importing runs dlq import.
type importing struct {
	*globals
	format, queue, reason string
	dry                   bool
	deaths                bool // of a job queue, whose jobs can die again

	report importReport
	take   func(context.Context, []nixie.Letter) ([]nixie.Receipt, []error)
	batch  []letterfile.Record
	size   int   // bytes of the bodies in batch
	masked int64 // added letters whose secrets were hidden when the file was written

	answered func(in bool) // called for each record in order: whether the office has it now; may be nil
}

// importReport is the JSON of dlq import and dlq adopt.
type importReport struct {
	DryRun  bool     `json:"dry_run"`
	Read    int64    `json:"read"`
	Added   int64    `json:"added"`   // or would be added
	Known   int64    `json:"known"`   // the office had them already
	Damaged int64    `json:"damaged"` // of those added or known: records that could not be read whole
	Refused int64    `json:"refused"` // no letters, or letters that cannot be taken in
	Errors  []string `json:"errors"`  // the first [shownErrors] of them
}

// Bounds of an import.
const (
	shownErrors = 20
	importBatch = 200     // letters in one commit …
	importBytes = 8 << 20 // … and bytes of their bodies
)

func newDLQImport(g *globals) *cobra.Command {
	m := &importing{globals: g}
	cmd := g.command(g.described("dlq import", oneArg("file or folder")),
		func(ctx context.Context, args []string) error { return m.run(ctx, args[0]) })
	fs := cmd.Flags()
	fs.StringVar(&m.format, "format", string(items.Auto), "auto, json, jsonl or csv")
	fs.StringVar(&m.queue, "queue", "", "queue of all letters (default what each one names)")
	fs.StringVar(&m.reason, "reason", "", "why; recorded with every letter (default the name of the file)")
	fs.BoolVar(&m.dry, "dry-run", false, "read and check everything, and change nothing")
	return cmd
}

func (m *importing) run(ctx context.Context, path string) (err error) {
	if m.reason == "" {
		m.reason = "imported from " + path
	}
	m.report = importReport{DryRun: m.dry, Errors: []string{}}
	file, err := letterfile.Open(letterfile.Options{Path: path, Stdin: m.In, Format: items.Format(m.format), Queue: m.queue})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return m.end(ctx, m.takeIn(ctx, func() error { return m.drain(ctx, file.Next) }))
}

// takeIn runs drain on a store, which it creates if need be. A dry run creates none: it treats a
// missing store as an empty one.
func (m *importing) takeIn(ctx context.Context, drain func() error) error {
	if !m.dry {
		return m.visitStore(app.Options{Clock: m.Now}, func(o *office.Office) error {
			m.take = func(ctx context.Context, letters []nixie.Letter) ([]nixie.Receipt, []error) {
				if m.deaths {
					return o.AdoptDeaths(ctx, letters, m.reason)
				}
				return o.Adopt(ctx, letters, m.reason)
			}
			return drain()
		})
	}
	entered := false
	err := m.visit(func(o *office.Office) error {
		entered, m.take = true, o.PreviewAdopt
		return drain()
	})
	if entered || nixie.CodeOf(err) != nixie.CodeNotFound {
		return err
	}
	m.take = func(_ context.Context, letters []nixie.Letter) ([]nixie.Receipt, []error) {
		return make([]nixie.Receipt, len(letters)), make([]error, len(letters))
	}
	return drain()
}

// drain takes in records batch by batch, until [io.EOF].
func (m *importing) drain(ctx context.Context, next func() (letterfile.Record, error)) error {
	for {
		rec, err := next()
		if err == io.EOF {
			return m.flush(ctx)
		}
		if err != nil {
			return errors.Join(m.flush(ctx), err)
		}
		if err := m.add(ctx, rec); err != nil {
			return err
		}
	}
}

// add takes in a record, together with others.
func (m *importing) add(ctx context.Context, rec letterfile.Record) error {
	m.report.Read++
	if rec.Err != nil {
		m.refuse(rec.Err)
		return nil
	}
	broker.MarkElsewhere(&rec.Letter)
	m.batch = append(m.batch, rec)
	m.size += len(rec.Letter.Message.Body)
	if len(m.batch) < importBatch && m.size < importBytes {
		return nil
	}
	return m.flush(ctx)
}

// flush takes in a batch. An error ends the import; a letter that is refused does not.
func (m *importing) flush(ctx context.Context) error {
	letters := make([]nixie.Letter, len(m.batch))
	for i := range m.batch {
		letters[i] = m.batch[i].Letter
	}
	receipts, errs := m.take(ctx, letters)
	for i, err := range errs {
		at := m.batch[i].Position
		before := m.report.Refused
		switch {
		case err == nil && receipts[i].Different && broker.IsPointed(&letters[i]):
			m.report.Known++ // one of the two had no body
		case err == nil && receipts[i].Different:
			m.refuse(nixie.Errorf(nixie.CodeConflict, "%s: %s is here with another body: give one of the two another ID, "+
				"or the items of another job another --queue", at, receipts[i].ID))
		case err == nil && receipts[i].Duplicate:
			m.report.Known++
		case err == nil:
			m.report.Added++
			if m.batch[i].Masked {
				m.masked++
			}
		case aboutOne(err):
			m.refuse(fmt.Errorf("%s: %w", at, err))
		default:
			return err
		}
		if m.answered != nil {
			m.answered(m.report.Refused == before)
		}
	}
	m.batch, m.size = m.batch[:0], 0
	m.status("%d read, %d added", m.report.Read, m.report.Added)
	return nil
}

// aboutOne reports whether an error is about one letter and not about the store.
func aboutOne(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeInvalid, nixie.CodeLimit, nixie.CodeConflict:
		return true
	}
	return false
}

func (m *importing) refuse(err error) {
	m.report.Refused++
	if len(m.report.Errors) < shownErrors {
		m.report.Errors = append(m.report.Errors, err.Error())
		m.say("%s", err)
	}
}

// end prints the report, also before an error.
func (m *importing) end(ctx context.Context, err error) error {
	r := &m.report
	if r.Read > 0 {
		m.status("")
	}
	if more := r.Refused - int64(len(r.Errors)); more > 0 {
		m.say("and %d more", more)
	}
	if m.masked > 0 {
		m.say("secrets were hidden when this was exported, in %s: what is added differs from the original; "+
			"nixie dlq export --unmask keeps secrets", plural(m.masked, "letter"))
	}
	if err == nil || r.Read > 0 {
		if printing := m.object(r, func(w io.Writer) { m.print(w, r) }); printing != nil {
			return printing
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return exit(ExitInterrupted)
	case err != nil && r.Added > 0 && !m.dry:
		m.say("nixie: %v", err)
		m.say("the letters before it are in: correct the rest and import the file again, nothing is added twice")
		return exit(ExitPartly)
	case err != nil:
		return err
	}
	return exitIf(r.Refused > 0, ExitPartly)
}

func (m *importing) print(w io.Writer, r *importReport) {
	fmt.Fprintf(w, "%s %s%s\n", plural(r.Added, "letter"), either(m.dry, "would be added", "added"),
		counts(count{r.Known, "here already"}, count{r.Damaged, "damaged"}, count{r.Refused, "refused"}))
}
