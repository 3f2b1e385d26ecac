// Package cli is the command line. A command is a function of arguments, streams and environment
// that returns an exit code, so that a test needs no process for it. The folder help has the help
// of all commands.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/store"
)

// Exit codes of every command.
const (
	ExitOK          = 0
	ExitFailure     = 1 // failed, or nothing of that name
	ExitUsage       = 2 // the arguments are wrong; nothing was touched
	ExitThreshold   = 3 // a check is over its threshold
	ExitDenied      = 4
	ExitLeft        = 4 // of consume: others have what is left
	ExitPartly      = 5 // done, but some of it is dead or was skipped
	ExitInterrupted = 130
)

// Streams are what a command talks through.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      config.Environment
	OutTTY   bool // Out is a terminal
	ErrTTY   bool // Err is a terminal
	InTTY    bool // In is a terminal: questions can be asked
	Columns  int  // of the terminal behind Out; 0 when it does not tell
	Now      func() time.Time
}

// System is the streams of this process.
func System() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: config.OS(),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())), InTTY: term.IsTerminal(int(os.Stdin.Fd())),
		Columns: columnsOf(os.Stdout), Now: time.Now,
	}
}

// stopSignals are those that ask for an end in good order: what runs finishes, and what
// waits is given back. The end of a terminal is one, unless nohup has it ignored.
func stopSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// Main runs a command line and returns its exit code.
func Main(args []string, s Streams) int {
	if command.GuardMain() {
		return ExitOK
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	// Who reads us may go away, as head does. Then a write fails, instead of a
	// signal that ends the process in the middle of what it does.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s.Out = outlet{s.Out}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	return exitCode(s, root.ExecuteContext(ctx))
}

// errUnread says that nobody reads the output any more: no mistake, and nothing
// to be said about.
var errUnread = errors.New("nobody reads the output")

// outlet is standard output.
type outlet struct{ io.Writer }

func (o outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errUnread
	}
	return n, err
}

// exit is an error that only carries a code: what there is to say was said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// exitIf ends a command with a code if something is so.
func exitIf(is bool, code exit) error {
	if is {
		return code
	}
	return nil
}

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode prints an error and says how the process ends.
func exitCode(s Streams, err error) int {
	var code exit
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, errUnread):
		return ExitOK
	}
	fmt.Fprintf(s.Err, "nixie: %s\n", escape(err.Error()))
	var usage usageError
	switch {
	case errors.As(err, &usage), nixie.CodeOf(err) == nixie.CodeInvalid:
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case nixie.CodeOf(err) == nixie.CodeDenied:
		return ExitDenied
	}
	return ExitFailure
}

// globals are the flags of every command.
type globals struct {
	Streams
	store  string
	output string
	color  string
	help   map[string]helpText
}

func newRoot(s Streams) *cobra.Command {
	g := &globals{Streams: s, help: readHelp()}
	root := g.family("", newRun(g), newMap(g), newEnqueue(g), newWork(g), newConsume(g), newDLQ(g), newQueue(g), newMessage(g), newStream(g),
		newPrune(g), newVerify(g), newDoctor(g), newMigrate(g), newPolicy(g), newVersion(g), newStats(g), newCheck(g), newAudit(g), newOperation(g))
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentFlags().StringVar(&g.store, "store", "", "store to use, such as sqlite:///path/to/file, or itemdir:path to look at a folder of items (default $NIXIE_STORE, else a file in the data folder)")
	root.PersistentFlags().VarP(newChoice(&g.output, asTable, formats()...), "output", "o", "how to print what there is to print")
	root.PersistentFlags().Var(newChoice(&g.color, colorAuto, colorAuto, colorAlways, colorNever), "color", "colours: auto is on a terminal without $NO_COLOR")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	return root
}

// open opens the store that flags and environment name.
func (g *globals) open(opts app.Options) (store.Store, error) {
	url, err := config.StoreURL(g.store, g.Env)
	if err != nil {
		return nil, err
	}
	opts.Warn = func(err error) { fmt.Fprintf(g.Err, "nixie: %s\n", escape(err.Error())) }
	opts.Made = func() { fmt.Fprintf(g.Err, "store: %s (new)\n", escapeLine(app.Shown(url))) }
	return app.OpenStore(url, opts)
}
