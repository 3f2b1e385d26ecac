package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// The formats of a folder in the layout of MapReduce, with a file for each item.
const (
	asItemDir = "itemdir"
	asProdigy = "prodigy"
)

// exporting runs dlq export.
type exporting struct {
	*globals
	masking
	flags  *pflag.FlagSet
	choice letterFlags
	layout string
	format string
	out    string
	folder bool // a folder of items is written
	n      int64
	lossy  int64 // letters of which a part could not be written
}

func newDLQExport(g *globals, of *jobLetters) *cobra.Command {
	x := &exporting{globals: g, choice: letterFlags{of: of}}
	return g.inOffice(g.described("dlq export"), func(ctx context.Context, o *office.Office, _ []string) error {
		f, err := x.choice.resolve(ctx, o, office.Unresolved(x.choice.filter))
		if err != nil {
			return err
		}
		do := x.write
		switch {
		case x.folder:
			do = x.writeItems
		case x.out != "":
			do = x.writeTo
		}
		return cmp.Or(do(ctx, o, f), exitIf(x.lossy > 0, ExitPartly))
	}, &x.choice, x, &x.masking)
}

func (x *exporting) register(fs *pflag.FlagSet) {
	x.flags = fs
	fs.StringVar(&x.format, "format", asJSONL, "jsonl, json or csv; itemdir, or prodigy, is a folder of items")
	fs.StringVar(&x.layout, "layout", layoutNixie, "nixie, or mapreduce for dead letter items")
	fs.StringVar(&x.out, "out", "", "file to write, or folder of items (default standard output)")
}

func (x *exporting) read(g *globals) error {
	if !x.flags.Changed("format") && x.flags.Changed("output") {
		x.format = g.output
	}
	if x.folder = x.format == asItemDir || x.format == asProdigy; x.folder {
		return x.checkFolder()
	}
	g.output = x.format
	switch x.layout {
	case layoutNixie:
		return g.format(asJSONL, asJSON, asCSV)
	case layoutMapReduce:
		return g.format(asJSONL, asJSON)
	}
	return usagef("--layout is %q: give %s or %s", x.layout, layoutNixie, layoutMapReduce)
}

// writeTo writes a new file that only the user can read, and removes it when something fails.
func (x *exporting) writeTo(ctx context.Context, o *office.Office, f nixie.Filter) error {
	path := x.out
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nixie.Errorf(nixie.CodeConflict, "%s is there already: name another file", path)
	}
	if err != nil {
		return unwritable("--out", err)
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

// checkFolder refuses flags that do not fit a folder of items.
func (x *exporting) checkFolder() error {
	switch {
	case x.out == "":
		return usagef("a folder of items needs --out: name the folder")
	case x.layout != layoutNixie && x.layout != layoutMapReduce:
		return usagef("--layout is %q: a folder of items has the layout %s", x.layout, layoutMapReduce)
	}
	return nil
}

// writeItems writes a folder of items.
func (x *exporting) writeItems(ctx context.Context, o *office.Office, f nixie.Filter) error {
	to, err := itemfile.NewWriter(x.out, x.Now)
	if err != nil {
		return err
	}
	err = x.each(ctx, o, f, func(l *nixie.Letter) error {
		return to.Write(l, x.item(l))
	})
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	x.say("%s in %s", plural(x.n, "item"), x.out)
	return nil
}

// write streams the letters: it never holds them all.
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

// each adds every letter of the choice.
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

// form returns how to write one letter, and what to call after the last.
func (x *exporting) form() (add func(*nixie.Letter) error, end func() error, err error) {
	switch {
	case x.output == asCSV:
		w, err := letterfile.NewCSVWriter(x.Out)
		return func(l *nixie.Letter) error { return w.Write(l, x.hidden) }, w.Close, err
	case x.layout == layoutMapReduce:
		list := newListing[itemfile.Item](x.globals, nil)
		return func(l *nixie.Letter) error { return list.add(x.item(l)) }, list.close, nil
	}
	list := newListing[office.LetterDetail](x.globals, nil)
	return func(l *nixie.Letter) error { return list.add(x.story(l)) }, list.close, nil
}

// item converts a letter to a dead letter item. When something is lost it says so.
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
