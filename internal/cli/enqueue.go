package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/store"
)

// enqueueFlags are the flags of nixie enqueue.
type enqueueFlags struct {
	*globals
	flags      *pflag.FlagSet
	lines      bool
	m          nixie.Message
	onConflict string
	at, body   string
	expiresIn  time.Duration
	headers    []string
	hasBody    bool
}

// The choices of --on-conflict.
const (
	conflictReturns  = "return"
	conflictFails    = "fail"
	conflictReplaces = "replace"
)

func newEnqueue(g *globals) *cobra.Command {
	f := &enqueueFlags{globals: g}
	args := arguments(1, 2, "wants a queue and at most one file, has %[2]d arguments: see %[1]s --help")
	cmd := f.command(g.described("enqueue", args), f.run)
	fs := cmd.Flags()
	f.flags = fs
	fs.BoolVar(&f.lines, "jsonl", false, "each line of FILE is a message")
	fs.StringVar(&f.body, "body", "", "the body")
	fs.StringVar(&f.m.Type, "type", "", "kind of the message, by which handlers are chosen")
	fs.StringVar(&f.m.Key, "key", "", "your own name for it")
	fs.StringVar(&f.m.Stream, "stream", "", "messages of one stream keep their order, if the queue keeps order")
	fs.StringVar(&f.m.DedupeKey, "dedupe-key", "", "at most one message of the queue has it")
	fs.Var(newChoice(&f.onConflict, conflictReturns, conflictReturns, conflictFails, conflictReplaces), "on-conflict",
		"what a taken dedupe key means: the receipt names its holder, an error, or that its holder takes the new body")
	fs.IntVar(&f.m.Priority, "priority", 0, fmt.Sprintf("from %d to %d; higher comes first", nixie.MinPriority, nixie.MaxPriority))
	durationVar(fs, &f.m.Delay, "delay", 0, "not handed out before this time has passed")
	fs.StringVar(&f.at, "at", "", "not handed out before this time, such as 2026-05-04T12:00:00Z")
	durationVar(fs, &f.expiresIn, "expires-in", 0, "not handed out after this time has passed")
	fs.StringArrayVar(&f.headers, "header", nil, "a header, as name=value; may be repeated")
	return cmd
}

func (f *enqueueFlags) run(ctx context.Context, args []string) (err error) {
	f.hasBody = f.flags.Changed("body")
	if err := f.check(args); err != nil {
		return err
	}
	in := f.In
	if name := sourceOf(args); name != stdinList && !f.hasBody {
		file, err := openInput(name)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	} else if f.InTTY && !f.hasBody {
		f.say("nixie: reading from the terminal; end with Ctrl-D")
	}
	if f.lines {
		return f.with(func(st store.Store) error { return f.takeLines(ctx, st, in) })
	}
	if f.m.Body, err = f.readBody(interruptible{ctx, in}); err != nil {
		return err
	}
	if err := f.m.Check(); err != nil {
		return err
	}
	return f.with(func(st store.Store) error { return f.one(ctx, st) })
}

// sourceOf returns the named file, or standard input.
func sourceOf(args []string) string {
	if len(args) == 2 {
		return args[1]
	}
	return stdinList
}

// check finds mistakes before any input is read.
func (f *enqueueFlags) check(args []string) error {
	f.m.Queue = args[0]
	f.m.OnConflict = map[string]nixie.Conflict{
		conflictReturns: nixie.ReturnExisting, conflictFails: nixie.FailOnConflict, conflictReplaces: nixie.ReplaceExisting,
	}[f.onConflict]
	switch {
	case f.hasBody && (len(args) == 2 || f.lines):
		return usagef("--body is the whole body: leave FILE and --jsonl out")
	case f.lines && (f.m.Key != "" || f.m.DedupeKey != ""):
		return usagef("--key and --dedupe-key are of one message: write key and dedupe_key into the lines of --jsonl")
	case f.at != "" && f.m.Delay != 0:
		return usagef("--at and --delay say the same: give one")
	case f.expiresIn < 0:
		return usagef("--expires-in is %s: give a positive duration", f.expiresIn)
	case f.onConflict != conflictReturns && f.m.DedupeKey == "" && !f.lines:
		return usagef("--on-conflict is about a dedupe key: give --dedupe-key")
	}
	if f.at != "" {
		at, err := time.Parse(time.RFC3339Nano, f.at)
		if err != nil {
			return usagef("--at is %q: give a time such as 2026-05-04T12:00:00Z", f.at)
		}
		f.m.NotBefore = at
	}
	if f.expiresIn > 0 {
		f.m.ExpiresAt = f.Now().Add(f.expiresIn)
	}
	for _, h := range f.headers {
		name, value, found := strings.Cut(h, "=")
		if !found || name == "" {
			return usagef("--header is %q: write name=value", h)
		}
		f.m.Headers = append(f.m.Headers, nixie.Header{Name: name, Value: value})
	}
	return f.m.Check()
}

// readBody reads the body, up to one byte more than is allowed.
func (f *enqueueFlags) readBody(in io.Reader) ([]byte, error) {
	if f.hasBody {
		return []byte(f.body), nil
	}
	return io.ReadAll(io.LimitReader(in, nixie.MaxBody+1))
}

// with opens the store, or creates it.
func (f *enqueueFlags) with(do func(store.Store) error) error {
	return f.withStore(app.Options{Owner: config.Actor(f.Env), Clock: f.Now}, do)
}

// receiptView is the receipt of one message.
type receiptView struct {
	ID        nixie.ID `json:"id"`
	Duplicate bool     `json:"duplicate"`
	Different bool     `json:"different"`
}

// lineReceipt is the receipt of a line of --jsonl.
type lineReceipt struct {
	Line int `json:"line"`
	receiptView
}

func (f *enqueueFlags) one(ctx context.Context, st store.Store) error {
	receipts, err := st.Enqueue(ctx, f.m)
	if err != nil {
		return err
	}
	r := receipts[0]
	return cmp.Or(f.object(receiptView{r.ID, r.Duplicate, r.Different}, func(w io.Writer) {
		fmt.Fprintf(w, "%s%s\n", r.ID, f.remark(r))
	}), f.outcome(r.Different))
}

// remark explains the receipt of a message whose dedupe key was taken.
func (f *enqueueFlags) remark(r nixie.Receipt) string {
	switch {
	case r.Different && f.m.OnConflict == nixie.ReplaceExisting:
		return "  (there already: it has the new body now)"
	case r.Different:
		return "  (there already, with another body: nothing was added)"
	case r.Duplicate:
		return "  (there already: nothing was added)"
	}
	return ""
}

// outcome ends the command when the bodies of some messages were not taken.
func (f *enqueueFlags) outcome(different bool) error {
	return exitIf(different && f.m.OnConflict != nixie.ReplaceExisting, ExitPartly)
}
