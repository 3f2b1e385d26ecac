package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/runner"
)

// outputFlags tell where the output of commands goes.
type outputFlags struct {
	none, tag bool
	results   string
}

func (f *outputFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.none, "no-output", false, "do not show what commands print")
	fs.BoolVar(&f.tag, "tag", false, "begin each line that a command prints with the name of its item and a tab")
	fs.StringVar(&f.results, "results", "", "folder that gets what commands print as well, as NAME/stdout and NAME/stderr")
}

// printer writes the output of commands, one command after the other.
type printer struct {
	outputFlags
	out, err sink
	mask     app.Mask      // for the output of failures, and for shown output
	byID     bool          // --results names files by message IDs, because keys may repeat
	writing  chan struct{} // holds one while an output is written
	bar      *progress     // the bar on the terminal that is written to; nil: none
}

// sink is one destination of output.
type sink struct {
	io.Writer
	shown bool // to people: control characters are escaped, and the last line ends
	tty   bool
}

// printer returns the printer that the flags ask for; nil shows nothing.
func (f *outputFlags) printer(g *globals, mask app.Mask) (*printer, error) {
	if f.results != "" {
		if err := os.MkdirAll(f.results, 0o755); err != nil {
			return nil, unwritable("--results", err)
		}
	} else if f.none {
		return nil, nil
	}
	p := &printer{
		outputFlags: *f, out: sink{g.Out, g.OutTTY, g.OutTTY}, err: sink{g.Err, true, g.ErrTTY}, mask: mask,
		writing: make(chan struct{}, 1),
	}
	if !g.forPeople() {
		p.out = p.err
	}
	return p, nil
}

// resultsByID makes --results name files by message IDs.
func (h *handling) resultsByID() {
	if h.printer != nil {
		h.printer.byID = true
	}
}

// show writes an output whole. It returns when ctx ends, even if the reader takes nothing. The
// goroutine that writes then stays behind and ends with the process.
func (p *printer) show(ctx context.Context, o *runner.Printed) error {
	if o.Stdout.Size()+o.Stderr.Size() == 0 && p.results == "" {
		o.Close()
		return nil
	}
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		o.Close()
		return ctx.Err()
	}
	wrote := make(chan error, 1)
	go func() {
		err := p.write(o)
		o.Close()
		<-p.writing
		wrote <- err
	}()
	select {
	case err := <-wrote:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *printer) write(o *runner.Printed) error {
	if err := p.keep(o); err != nil || p.none {
		return err
	}
	if err := p.copy(p.out, &o.Stdout, o); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	_ = p.copy(p.err, &o.Stderr, o) // standard error may be closed
	return nil
}

// keep writes the files of --results.
func (p *printer) keep(o *runner.Printed) error {
	if p.results == "" {
		return nil
	}
	name := o.Item
	if p.byID {
		name = o.ID.String()
	}
	folder := filepath.Join(p.results, itemfile.FileName(name))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable("--results", err)
	}
	for _, f := range [...]struct {
		name string
		of   *command.Output
	}{{"stdout", &o.Stdout}, {"stderr", &o.Stderr}} {
		file, err := os.Create(filepath.Join(folder, f.name))
		if err != nil {
			return unwritable("--results", err)
		}
		err = edited(file, f.of, p.masked(o.Failed))
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return unwritable("--results", err)
		}
	}
	return nil
}

// copy writes one output to a sink.
func (p *printer) copy(to sink, from *command.Output, o *runner.Printed) error {
	if from.Size() == 0 {
		return nil
	}
	edits := p.masked(o.Failed || to.shown)
	if to.shown {
		edits = append(edits, escape)
	}
	if p.tag {
		edits = append(edits, tagged(escapeLine(o.Item)+"\t"))
	}
	if !to.shown {
		return edited(to, from, edits)
	}
	write := func() error {
		last := &lastByte{Writer: to}
		err := edited(last, from, edits)
		if err == nil && last.byte != '\n' {
			_, err = io.WriteString(to, "\n") // or the next text would stand on this line
		}
		return err
	}
	if p.bar == nil || !to.tty {
		return write()
	}
	return p.bar.without(write)
}

// masked begins a list of edits with the mask, if secrets have to be hidden.
func (p *printer) masked(hide bool) []func(string) string {
	if !hide || p.mask == nil {
		return nil
	}
	return []func(string) string{p.mask.Text}
}

// editAtOnce limits the bytes of an output that are edited at once, up to the end of a line. A
// secret that is longer than that may be shown in part.
const editAtOnce = 1 << 20

// edited copies an output through edits.
func edited(to io.Writer, from *command.Output, edits []func(string) string) error {
	if from.Size() == 0 {
		return nil
	}
	w := bufio.NewWriterSize(to, int(min(from.Size(), 64<<10)))
	if len(edits) == 0 {
		if _, err := io.Copy(w, from.Reader()); err != nil {
			return err
		}
		return w.Flush()
	}
	buf, have := make([]byte, min(from.Size(), editAtOnce)), 0
	for r := from.Reader(); ; {
		n, err := io.ReadFull(r, buf[have:])
		have += n
		end := have
		if err == nil {
			end = wholeText(buf)
		}
		text := string(buf[:end])
		have = copy(buf, buf[end:have])
		for _, edit := range edits {
			text = edit(text)
		}
		if _, err := w.WriteString(text); err != nil {
			return err
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return w.Flush()
		default:
			return err
		}
	}
}

// wholeText returns the length of text up to its last line end or, without one, up to its last
// whole character.
func wholeText(text []byte) int {
	if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
		return at + 1
	}
	for end := len(text) - 1; end > len(text)-utf8.UTFMax && end > 0; end-- {
		if utf8.RuneStart(text[end]) {
			if !utf8.FullRune(text[end:]) {
				return end
			}
			break
		}
	}
	return len(text)
}

// tagged begins every line with tag, also of a text that comes in parts.
func tagged(tag string) func(string) string {
	begun := false
	return func(text string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			if !begun {
				b.WriteString(tag)
			}
			b.WriteString(line)
			begun = !strings.HasSuffix(line, "\n")
		}
		return b.String()
	}
}

// lastByte remembers the last byte that was written.
type lastByte struct {
	io.Writer
	byte byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.byte = p[len(p)-1]
	}
	return l.Writer.Write(p)
}
