package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/office"
)

// The layouts of a letter in a file.
const (
	layoutNixie     = "nixie"
	layoutMapReduce = "mapreduce"
)

// What --format says of a folder: the layout of MapReduce, a file for each item.
const (
	asItemDir = "itemdir"
	asProdigy = "prodigy"
)

// exporting is dlq export.
type exporting struct {
	*globals
	veil
	layout string
	folder bool // of items, instead of a file
	n      int64
	lossy  int64 // letters of which something could not be written
}

func newDLQExport(g *globals, of *jobLetters) *cobra.Command {
	filter := letterFlags{of: of}
	var format, out string
	x := &exporting{globals: g}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write whole letters with their history",
		Long: `Writes letters whole: body, headers, history, attachments. JSON, JSON lines and CSV
lose nothing (a body that is not text is body_base64), and nixie dlq import reads
them. In CSV a cell that begins with an apostrophe is text, so that no spreadsheet
takes it for a formula; history and other lists are JSON in their cell. A file that
exists is not replaced.

Headers that are credentials and secrets in the texts of failures are hidden unless
--unmask; a letter to which that was done has masked true. Bodies are written as
they are.

--layout mapreduce writes dead letter items of MapReduce, as JSON or JSON lines. What
was imported from such items comes out as it came in, with what happened since.
--format itemdir, or prodigy, writes them as such jobs keep them: into --out, a folder,
as JOB/mapreduce/dlq/JOB/items/ID.json and the index beside items. An item that lies
there is replaced, what else lies there stays.`,
		Example: `  nixie dlq export --filter queue:orders > letters.jsonl
  nixie dlq export --format csv --out letters.csv
  nixie dlq export --filter 'status:resolved died:<2026-01-01' --out old.jsonl
  nixie dlq export --layout mapreduce --filter queue:mapreduce/nightly --format json
  nixie dlq export --format itemdir --out ~/.prodigy/dlq/shop`,
		Args: noArgs,
	}
	filter.register(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", asJSONL, "jsonl, json or csv; itemdir, or prodigy, is a folder of items")
	cmd.Flags().StringVar(&x.layout, "layout", layoutNixie, "nixie, or mapreduce for dead letter items")
	x.register(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "file to write, or folder of items (default standard output)")
	var f nixie.Filter
	check := func() (err error) {
		if f, err = filter.parse(g); err != nil {
			return err
		}
		f = office.Unresolved(f)
		if !cmd.Flags().Changed("format") && cmd.Flags().Changed("output") {
			format = g.output
		}
		if x.folder = format == asItemDir || format == asProdigy; x.folder {
			return x.checkFolder(out)
		}
		g.output = format
		switch x.layout {
		case layoutNixie:
			return g.format(asJSONL, asJSON, asCSV)
		case layoutMapReduce:
			return g.format(asJSONL, asJSON)
		}
		return usagef("--layout is %q: give %s or %s", x.layout, layoutNixie, layoutMapReduce)
	}
	cmd.RunE = g.with(check, func(ctx context.Context, o *office.Office, _ []string) error {
		if err := x.over(g); err != nil {
			return err
		}
		f, err := filter.resolve(ctx, o, f)
		if err != nil {
			return err
		}
		do := x.write
		switch {
		case x.folder:
			do = func(ctx context.Context, o *office.Office, f nixie.Filter) error { return x.writeItems(ctx, o, f, out) }
		case out != "":
			do = func(ctx context.Context, o *office.Office, f nixie.Filter) error { return x.writeTo(ctx, o, f, out) }
		}
		if err := do(ctx, o, f); err != nil {
			return err
		}
		if x.lossy > 0 {
			return exit(ExitPartly)
		}
		return nil
	})
	return cmd
}

// writeTo writes a new file, for the user's eyes only, and takes it away again
// when something goes wrong.
func (x *exporting) writeTo(ctx context.Context, o *office.Office, f nixie.Filter, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nixie.Errorf(nixie.CodeConflict, "%s is there already: name another file", path)
	}
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(file, 1<<16)
	screen, to := x.globals, *x.globals
	to.Out, to.OutTTY = buffer, false
	x.globals = &to
	err = x.write(ctx, o, f)
	x.globals = screen
	err = errors.Join(err, buffer.Flush(), file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	x.say("%s in %s", plural(x.n, "letter"), path)
	return nil
}

// checkFolder refuses what cannot be said of a folder of items.
func (x *exporting) checkFolder(out string) error {
	switch {
	case out == "":
		return usagef("a folder of items needs --out: name the folder")
	case x.layout != layoutNixie && x.layout != layoutMapReduce:
		return usagef("--layout is %q: a folder of items has the layout %s", x.layout, layoutMapReduce)
	}
	return nil
}

// writeItems writes a folder of items.
func (x *exporting) writeItems(ctx context.Context, o *office.Office, f nixie.Filter, folder string) error {
	to, err := itemfile.NewWriter(folder, x.Now)
	if err != nil {
		return err
	}
	err = x.each(ctx, o, f, func(l *nixie.Letter) error {
		return to.Write(l, x.item(l))
	})
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	x.say("%s in %s", plural(x.n, "item"), folder)
	return nil
}

// write goes through the letters in flat memory.
func (x *exporting) write(ctx context.Context, o *office.Office, f nixie.Filter) error {
	add, end, err := x.form()
	if err != nil {
		return err
	}
	if err := x.each(ctx, o, f, add); err != nil {
		return err
	}
	return end()
}

// each adds all letters that are to be exported.
func (x *exporting) each(ctx context.Context, o *office.Office, f nixie.Filter, add func(*nixie.Letter) error) error {
	for letter, err := range o.AllLetters(ctx, f, true) {
		if err != nil {
			return err
		}
		x.letter(&letter)
		if err := add(&letter); err != nil {
			return err
		}
		x.n++
	}
	return nil
}

// form is how one letter is written, and what comes after the last.
func (x *exporting) form() (add func(*nixie.Letter) error, end func() error, err error) {
	switch {
	case x.output == asCSV:
		w, err := letterfile.NewCSVWriter(x.Out)
		return func(l *nixie.Letter) error { return w.Write(l, x.hid) }, w.Close, err
	case x.layout == layoutMapReduce:
		list := newListing[itemfile.Item](x.globals, nil)
		return func(l *nixie.Letter) error { return list.add(x.item(l)) }, list.close, nil
	}
	list := newListing[office.LetterDetail](x.globals, nil)
	return func(l *nixie.Letter) error { return list.add(x.story(l)) }, list.close, nil
}

// item is a letter as a dead letter item. Of what is lost it says so.
func (x *exporting) item(l *nixie.Letter) itemfile.Item {
	item, err := itemfile.ItemOf(l)
	switch {
	case err != nil:
		x.lossy++
		x.say("letter %s: written without what was kept of its item: %v", l.ID, err)
	case len(l.Damage) > 0:
		x.lossy++
		x.say("letter %s: written as far as it can be read: %s", l.ID, strings.Join(l.Damage, "; "))
	}
	return item
}
