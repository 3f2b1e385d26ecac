package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/lines"
	"github.com/nixie-go/nixie/store"
)

// Bounds of nixie enqueue --jsonl.
const (
	linesBatch = 1_000    // messages in one commit
	linesBytes = 8 << 20  // bytes of their bodies
	maxLine    = 32 << 20 // bytes of a line: a body with its escapes
)

// lineBatch enqueues lines and counts them.
type lineBatch struct {
	*enqueueFlags
	st    store.Store
	out   *listing[lineReceipt]
	lines []int // line numbers of batch
	batch []nixie.Message
	size  int

	accepted, added, duplicate, different int
	last                                  int // line number of the last accepted message
	keyless                               int // accepted messages without a dedupe key
	printing                              error
}

// takeLines enqueues a message for each line. It stops at the first line that is refused, and names
// it.
func (f *enqueueFlags) takeLines(ctx context.Context, st store.Store, in io.Reader) error {
	b := &lineBatch{enqueueFlags: f, st: st, out: newListing(f.globals, []column[lineReceipt]{
		{name: "line"}, {name: "id"}, {name: "duplicate"}, {name: "different"},
	})}
	err := b.all(ctx, in)
	if b.accepted > 0 {
		f.status("")
	}
	if b.printing == nil {
		b.printing = b.out.close()
	}
	switch {
	case err != nil && b.accepted > 0 && nixie.CodeOf(err) == nixie.CodeInvalid:
		return fmt.Errorf("%v\n%s", err, b.standing()) //nolint:errorlint // exit code 2 would say that nothing was touched
	case err != nil:
		return fmt.Errorf("%w\n%s", err, b.standing())
	}
	if b.printing != nil {
		return b.printing
	}
	f.say("%s taken: %d added, %d there already", plural(int64(b.accepted), "line"), b.added, b.duplicate)
	if b.different > 0 {
		became := "those were not changed"
		if f.m.OnConflict == nixie.ReplaceExisting {
			became = "those have the new one now"
		}
		f.say("%d of them with another body than the line: %s", b.different, became)
	}
	return f.outcome(b.different > 0)
}

// standing tells after an error which lines are in the queue, and how to go on.
func (b *lineBatch) standing() string {
	if b.accepted == 0 {
		return "nothing of the file is in the queue by this command"
	}
	s := fmt.Sprintf("the lines up to %d are in the queue (%d added, %d there already), and none after it\n", b.last, b.added, b.duplicate)
	if b.keyless > 0 {
		return s + fmt.Sprintf("go on with the rest, as in: tail -n +%d FILE; "+
			"%s of those before have no dedupe_key and would be added twice",
			b.last+1, plural(int64(b.keyless), "line"))
	}
	return s + "the whole file can be given again: by their dedupe_key the lines that are there are not added twice"
}

func (b *lineBatch) all(ctx context.Context, in io.Reader) error {
	buffered := bufio.NewReaderSize(interruptible{ctx, in}, interruptibleRead)
	for number := 1; ; number++ {
		line, err := readLine(buffered)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", number, err)
		}
		end := err != nil
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			m, err := lines.ParseDraft(line, b.m)
			if err != nil {
				return nixie.Errorf(nixie.CodeInvalid, "line %d: %w", number, err)
			}
			b.lines, b.batch, b.size = append(b.lines, number), append(b.batch, m), b.size+len(m.Body)
		}
		if end || len(b.batch) == linesBatch || b.size >= linesBytes {
			if err := b.flush(ctx); err != nil || end {
				return err
			}
		}
	}
}

// readLine reads a line. The last one may lack its end, and comes with io.EOF. A line that another
// error cuts off is dropped.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, nixie.Errorf(nixie.CodeLimit, "the line has more than %d bytes: store the body elsewhere and enqueue a reference",
				maxLine)
		case err == nil || errors.Is(err, io.EOF):
			return line, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// flush enqueues the batch, all of it or nothing.
func (b *lineBatch) flush(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	receipts, err := b.st.Enqueue(ctx, b.batch...)
	if err != nil {
		first, last := b.lines[0], b.lines[len(b.lines)-1]
		if nixie.CodeOf(err) == nixie.CodeOutcomeUnknown {
			return nixie.Errorf(nixie.CodeOutcomeUnknown, "whether lines %d to %d are in the queue is unknown: %w", first, last, err)
		}
		return nixie.Errorf(nixie.CodeOf(err), "lines %d to %d were refused: %w", first, last, err)
	}
	for i, r := range receipts {
		b.count(&b.batch[i], r)
		if b.printing == nil { // without a reader of receipts it goes on
			b.printing = b.out.add(lineReceipt{b.lines[i], receiptView{r.ID, r.Duplicate, r.Different}})
		}
	}
	b.last = b.lines[len(b.lines)-1]
	b.lines, b.batch, b.size = b.lines[:0], b.batch[:0], 0
	b.status("%s", plural(int64(b.accepted), "line"))
	return nil
}

func (b *lineBatch) count(m *nixie.Message, r nixie.Receipt) {
	b.accepted++
	switch {
	case r.Different:
		b.different++
		fallthrough
	case r.Duplicate:
		b.duplicate++
	default:
		b.added++
	}
	if m.DedupeKey == "" {
		b.keyless++
	}
}

// interruptible is a reader that returns when ctx ends, also while no input comes. The goroutine
// that reads then stays behind and ends with the process.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// interruptibleRead limits one read.
const interruptibleRead = 64 << 10

func (a interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buf := make([]byte, min(len(p), interruptibleRead))
	got := make(chan result, 1)
	go func() {
		n, err := a.in.Read(buf)
		got <- result{n, err}
	}()
	select {
	case r := <-got:
		return copy(p, buf[:r.n]), r.err
	case <-a.ctx.Done():
		return 0, a.ctx.Err()
	}
}
