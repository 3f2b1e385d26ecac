// Package cli is the command line. A command is a function of arguments, streams and environment
// that returns an exit code, so that a test needs no process for it. The folder help has the help
// of all commands.
package cli

import (
	"cmp"
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
	ExitLeft        = 4 // of consume: other members have the records that are left
	ExitPartly      = 5 // done, but some of it is dead or was skipped
	ExitFailing     = 7 // all of it fails, or too much
	ExitInterrupted = 130
)

// Streams connect a command to the process that runs it, or to a test.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      config.Environment
	OutTTY   bool // Out is a terminal
	ErrTTY   bool // Err is a terminal
	InTTY    bool // In is a terminal, so that a command can ask
	Columns  int  // of the terminal of Out; 0: not known
	Now      func() time.Time
	Name     string // by which the program was called, as a shell takes it; "" is nixie
}

// self begins each command that is advised, so that it can be typed as it is printed.
func (s *Streams) self() string { return cmp.Or(s.Name, "nixie") }

// System returns the streams of this process.
func System() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: config.OS(),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		InTTY:   term.IsTerminal(int(os.Stdin.Fd())),
		Columns: columnsOf(os.Stdout), Now: time.Now, Name: quote(command.Called(os.Args[0])),
	}
}

// Main runs a command line and returns its exit code.
func Main(args []string, s Streams) int {
	if command.GuardMain() {
		return ExitOK
	}
	if code, was := command.FirstMain(); was {
		return code
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	// A reader may go away, as head does. Without this a signal would end the process in the
	// middle of its work; so only a write fails.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s.Out = outlet{s.Out}
	if shellAsks(args) {
		return completeLine(s, args)
	}
	root, g := newTree(s)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	g.completes(root, args)
	if err := unknownCommand(root, args); err != nil {
		return exitCode(s, err)
	}
	return exitCode(s, root.ExecuteContext(ctx))
}

// errUnread ends a command whose output has no reader any more. It is no failure, and is not
// printed.
var errUnread = errors.New("the reader of the output has gone")

// outlet is standard output. A broken pipe becomes errUnread.
type outlet struct{ io.Writer }

func (o outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errUnread
	}
	return n, err
}

// exit is an error that only carries an exit code: the command has printed everything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// exitIf ends a command with a code if is holds.
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

// exitCode prints an error and returns the exit code that it stands for.
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

// globals holds the streams and the flags that every command has.
type globals struct {
	Streams
	store  string
	file   string         // of the configuration
	config *config.Config // set before a command runs
	output string
	color  string
	help   map[string]helpText
}

func newRoot(s Streams) *cobra.Command {
	root, _ := newTree(s)
	return root
}

// newTree returns all commands, and what they share.
func newTree(s Streams) (*cobra.Command, *globals) {
	g := &globals{Streams: s, help: readHelp()}
	root := g.family("", newRun(g), newMap(g), newEnqueue(g), newWork(g), newConsume(g), newDLQ(g), newQueue(g), newMessage(g),
		newStream(g), newPrune(g), newVerify(g), newDoctor(g), newMigrate(g), newPolicy(g), newVersion(g), newStats(g), newCheck(g),
		newAudit(g), newOperation(g), newServe(g), newConfig(g), newMailbox(g))
	root.AddCommand(shortcuts(g)...)
	addSynonyms(root)
	g.fitHelp(root)
	root.SilenceUsage, root.SilenceErrors = true, true
	fs := root.PersistentFlags()
	fs.StringVar(&g.store, "store", "", "store to use, such as file.db, postgres://host/database, or itemdir:path to look at a folder of items "+
		"(default $NIXIE_STORE, else a file in the data folder)")
	fs.StringVar(&g.file, "config", "", "file of the configuration (default $NIXIE_CONFIG, else nixie/config.yaml in the folder of the "+
		"user's configuration)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return g.configure(cmd) }
	fs.VarP(newChoice(&g.output, asTable, formats()...), "output", "o", "format of the output")
	root.Version = versions().Version
	root.SetVersionTemplate("nixie {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version; nixie version prints more")
	fs.Var(newChoice(&g.color, colorAuto, colorAuto, colorAlways, colorNever), "color", "colours: auto is on a terminal without $NO_COLOR")
	fs.VarP(newChoice(&g.output, asTable, formats()...), "json", "", "-o json")
	json := fs.Lookup("json")
	json.NoOptDefVal, json.Hidden = asJSON, true
	root.SetFlagErrorFunc(wrongFlag)
	return root, g
}

// open opens the store that the flags or the environment name.
func (g *globals) open(opts app.Options) (store.Store, error) {
	url, err := config.StoreURL(g.store, g.Env)
	if err != nil {
		return nil, err
	}
	opts.Warn = func(err error) { fmt.Fprintf(g.Err, "nixie: %s\n", escape(err.Error())) }
	opts.Made = func() { fmt.Fprintf(g.Err, "store: %s (new)\n", escapeLine(app.Shown(url))) }
	return app.OpenStore(url, opts)
}
