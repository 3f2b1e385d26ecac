package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/lines"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

func always() time.Time { return noon }

// manyLines are messages, of which the one in line bad cannot be read.
func manyLines(n, bad int, keyed bool) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		switch {
		case i == bad:
			b.WriteString("{\n")
		case keyed:
			fmt.Fprintf(&b, "{\"dedupe_key\":\"k%d\"}\n", i)
		default:
			b.WriteString("{}\n")
		}
	}
	return b.String()
}

// enqueueLines runs nixie enqueue --jsonl on a store.
func enqueueLines(ctx context.Context, path string, in io.Reader, out io.Writer, args ...string) (code int, said string) {
	var errs bytes.Buffer
	s := Streams{In: in, Out: outlet{out}, Err: &errs, Env: func(string) string { return "" }, Now: always}
	root := newRoot(s)
	root.SetArgs(append([]string{"enqueue", "many", "--jsonl", "--store", "sqlite://" + path, "-o", "jsonl"}, args...))
	code = exitCode(s, root.ExecuteContext(ctx))
	return code, strings.TrimPrefix(errs.String(), "store: sqlite://"+path+" (new)\n")
}

// What is half done is told exactly, and going on as told leaves each message
// there once.
func TestEnqueueLinesTellsHowFarItCame(t *testing.T) {
	const lines, bad, whole = 2500, 2100, 2 * linesBatch
	for _, keyed := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "s.db")
		var out bytes.Buffer
		code, said := enqueueLines(t.Context(), path, strings.NewReader(manyLines(lines, bad, keyed)), &out)
		advice := "go on with the rest, as in: tail -n +2001 FILE; 2000 lines of those before have no dedupe_key and would be added twice\n"
		rest := manyLines(lines-whole, 0, false)
		if keyed {
			advice = "the whole file can be given again: by their dedupe_key the lines that are there are not added twice\n"
			rest = manyLines(lines, 0, true)
		}
		want := "nixie: line 2100: want a JSON object: the JSON value ends too early: it was cut off\n" +
			"the lines up to 2000 are in the queue (2000 added, 0 there already), and none after it\n" + advice
		if code != ExitFailure || said != want {
			t.Errorf("exit code %d, said\n%s\nwant\n%s", code, said, want)
		}
		if got := strings.Count(out.String(), "\n"); got != whole {
			t.Errorf("%d receipts, want %d", got, whole)
		}
		if code, said := enqueueLines(t.Context(), path, strings.NewReader(rest), io.Discard); code != ExitOK {
			t.Fatalf("exit code %d: %s", code, said)
		}
		if got := ready(t, path); got != lines {
			t.Errorf("keyed %t: %d messages, want %d", keyed, got, lines)
		}
	}
}

// ready counts what waits in the queue.
func ready(t *testing.T, path string) int64 {
	t.Helper()
	st, err := sqlite.Open(path, sqlite.Options{Clock: always, Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // it was only read
	queues, err := st.Queues(t.Context(), store.QueueQuery{})
	if err != nil || len(queues) != 1 {
		t.Fatalf("%d queues, %v", len(queues), err)
	}
	return queues[0].Ready
}

// Messages are enqueued also when the reader of the receipts has gone.
func TestEnqueueLinesWithoutReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	code, said := enqueueLines(t.Context(), path, strings.NewReader(manyLines(1500, 0, false)), gone{})
	if code != ExitOK || said != "" || ready(t, path) != 1500 {
		t.Errorf("exit code %d, %q, %d messages", code, said, ready(t, path))
	}
}

// counting calls back once left lines were written.
type counting struct {
	left int
	then func()
}

func (c *counting) Write(p []byte) (int, error) {
	if c.left -= bytes.Count(p, []byte("\n")); c.left == 0 {
		c.then()
	}
	return len(p), nil
}

// An interrupt ends the reading of a pipe on which nothing comes.
func TestEnqueueLinesInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	in, feed := io.Pipe()
	defer feed.Close() //nolint:errcheck // the reader has ended
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go io.WriteString(feed, manyLines(linesBatch+1, 0, true)) //nolint:errcheck // what is not read is not missed
	code, said := enqueueLines(ctx, path, in, &counting{linesBatch, interrupt})
	if code != ExitInterrupted || !strings.Contains(said, "the lines up to 1000 are in the queue") {
		t.Errorf("exit code %d, %q", code, said)
	}
}

func TestEnqueueLineTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	long := io.MultiReader(strings.NewReader("{}\n{\"body\":\""), &endless{left: maxLine + 1})
	code, said := enqueueLines(t.Context(), path, long, io.Discard)
	if code != ExitFailure || !strings.Contains(said, "line 2: the line has more than 33554432 bytes") ||
		!strings.Contains(said, "nothing of the file is in the queue") {
		t.Errorf("exit code %d, %q", code, said)
	}
}

// endless gives the same byte many times.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	e.left -= n
	copy(p[:n], bytes.Repeat([]byte("x"), n))
	return n, nil
}

// Every line becomes a message that can be enqueued, or an error.
func FuzzDraft(f *testing.F) {
	for _, line := range []string{`{}`, `{"body":{"a":1},"headers":{"a":"b"}}`, `{"headers":[{"name":"a","value":"b"}]}`,
		`{"body":"x","delay":"1s"}`, `{"headers":{"a":1}}`, "{\xff}", `{"priority":9}`, `{"body":null}`} {
		f.Add([]byte(line))
	}
	flags := nixie.Message{Queue: "q", Headers: []nixie.Header{{Name: "h", Value: "v"}}}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := lines.ParseDraft(line, flags)
		if err == nil && (m.Check() != nil || m.Queue != "q") {
			t.Errorf("%q became %+v", line, m)
		}
		if len(flags.Headers) != 1 {
			t.Errorf("%q changed the flags", line)
		}
	})
}

// Stores keep the due time of some messages only. Readers see one form: null for every message that
// need not wait.
func TestNotBeforeHasOneForm(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{}`, `"not_before":null`},
		{`{"priority":1}`, `"not_before":null`},
		{`{"stream":"s"}`, `"not_before":null`},
		{`{"not_before":"2001-01-01T00:00:00Z"}`, `"not_before":null`},
		{`{"not_before":"2101-01-01T02:00:00+02:00"}`, `"not_before":"2101-01-01T00:00:00Z"`},
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		if code, said := enqueueLines(t.Context(), path, strings.NewReader(c.line), io.Discard); code != ExitOK {
			t.Fatal(said)
		}
		var out bytes.Buffer
		s := Streams{In: strings.NewReader(""), Out: outlet{&out}, Err: io.Discard, Env: func(string) string { return "" }, Now: always}
		root := newRoot(s)
		root.SetArgs([]string{"message", "list", "--limit", "1", "-o", "jsonl", "--store", "sqlite://" + path})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("of %s there is %s, want %s", c.line, out.String(), c.want)
		}
	}
}
