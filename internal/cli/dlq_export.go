package cli

import (
	"bufio"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

func newDLQExport(g *globals) *cobra.Command {
	var filter filterFlag
	var veil veil
	var format, out string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write whole letters with their history",
		Long: `Writes letters whole: body, headers, history, attachments. JSON and JSON lines
lose nothing (a body that is not text is body_base64), but headers that are
credentials and secrets in the texts of failures are hidden unless --unmask; a
letter to which that was done has masked true. Bodies are written as they are. CSV
has the columns of dlq list. A file that exists is not replaced.`,
		Example: `  nixie dlq export --filter queue:orders > letters.jsonl
  nixie dlq export --format csv --out letters.csv
  nixie dlq export --filter 'status:resolved died:<2026-01-01' --out old.jsonl`,
		Args: noArgs,
	}
	filter.register(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", asJSONL, "jsonl, json or csv")
	veil.register(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "file to write (default standard output)")
	var f nixie.Filter
	check := func() (err error) {
		if f, err = filter.parse(g); err != nil {
			return err
		}
		f = office.Unresolved(f)
		if !cmd.Flags().Changed("format") && cmd.Flags().Changed("output") {
			format = g.output
		}
		g.output = format
		return g.format(asJSONL, asJSON, asCSV)
	}
	cmd.RunE = g.with(check, func(ctx context.Context, o *office.Office, _ []string) error {
		if err := veil.over(g); err != nil {
			return err
		}
		if out == "" {
			_, err := export(ctx, g, o, f, &veil)
			return err
		}
		return exportTo(ctx, g, o, f, &veil, out)
	})
	return cmd
}

// exportTo writes a new file, for the user's eyes only, and takes it away again
// when something goes wrong.
func exportTo(ctx context.Context, g *globals, o *office.Office, f nixie.Filter, veil *veil, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nixie.Errorf(nixie.CodeConflict, "%s is there already: name another file", path)
	}
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(file, 1<<16)
	to := *g
	to.Out, to.OutTTY = buffer, false
	n, err := export(ctx, &to, o, f, veil)
	err = errors.Join(err, buffer.Flush(), file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	g.say("%s in %s", plural(int64(n), "letter"), path)
	return nil
}

func export(ctx context.Context, g *globals, o *office.Office, f nixie.Filter, veil *veil) (int, error) {
	if g.output == asCSV {
		return write(newListing(g, letterColumns(g.Now())), o, ctx, f, false, office.ViewLetter)
	}
	return write(newListing[maskedStory](g, nil), o, ctx, f, true, func(l *nixie.Letter) maskedStory {
		veil.letter(l)
		return veil.story(l)
	})
}

func write[V any](l *listing[V], o *office.Office, ctx context.Context, f nixie.Filter, whole bool, view func(*nixie.Letter) V) (int, error) {
	for letter, err := range o.AllLetters(ctx, f, whole) {
		if err != nil {
			return l.n, err
		}
		if err := l.add(view(&letter)); err != nil {
			return l.n, err
		}
	}
	return l.n, l.close()
}
