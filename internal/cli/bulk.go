package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// bulk is a command that does one thing to many letters, messages or records. Its flow is the
// same for all: check the flags → choose → preview → ask → run under progress → report.
type bulk struct {
	*globals
	why      string // the flag that takes the reason
	recorded string // where the reason is recorded
	required bool   // a reason is needed
	reason   string
	dry, yes bool
}

// register adds the flags that every bulk command has.
func (b *bulk) register(fs *pflag.FlagSet, why, recorded string) {
	b.why, b.recorded = why, recorded
	usage := "why; recorded " + recorded
	if b.required {
		usage += " (required)"
	}
	fs.StringVar(&b.reason, why, "", usage)
	fs.BoolVar(&b.dry, "dry-run", false, "show what would be done and do nothing")
	fs.BoolVarP(&b.yes, "yes", "y", false, "do not ask; needed when not on a terminal")
}

// needReason refuses a command without a reason that needs one.
func (b *bulk) needReason() error {
	if b.reason != "" || b.dry || !b.required {
		return nil
	}
	return usagef("--%s is empty: say why, it is recorded %s", b.why, b.recorded)
}

// canAsk refuses a command that has to ask and has no terminal for it.
func (b *bulk) canAsk() error {
	if b.yes || b.dry || b.InTTY && b.ErrTTY {
		return nil
	}
	return usagef("no terminal to ask on: give --yes, or --dry-run to see what would be done")
}

// plan tells what a bulk command would do.
type plan struct {
	n    int64           // how many it would change; a command does not ask about 0
	ask  func(io.Writer) // prints what a person has to know before saying yes
	view any             // printed by --dry-run; nil: the run itself knows that it is dry
	show func(io.Writer) // prints view for people; nil is ask
}

// do runs the command, unless it is a dry run. Without --yes it shows the plan and asks first.
func (b *bulk) do(preview func() (plan, error), run func() error) error {
	if b.yes && !b.dry {
		return run()
	}
	p, err := preview()
	switch {
	case err != nil:
		return err
	case b.dry && p.view == nil:
		return run()
	case b.dry && p.show == nil:
		return b.object(p.view, p.ask)
	case b.dry:
		return b.object(p.view, p.show)
	case p.n > 0:
		p.ask(b.Err)
		if err := b.confirm(); err != nil {
			return err
		}
	}
	return run()
}

// confirm asks whether to go on, and ends the command unless the answer is yes.
func (g *globals) confirm() error {
	fmt.Fprintf(g.Err, "\nGo on? Type yes: ")
	line, err := bufio.NewReader(g.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		g.say("nothing was done")
		return exit(ExitFailure)
	}
	return nil
}

// status replaces the progress line of a terminal; an empty text removes it.
func (g *globals) status(format string, args ...any) {
	if g.ErrTTY {
		fmt.Fprintf(g.Err, "\r\x1b[K"+format, args...)
	}
}

// count is one part of a summary, such as 3 skipped.
type count struct {
	n    int64
	what string
}

// counts writes ", 3 skipped, 1 failed" and leaves out what is 0.
func counts(all ...count) string {
	var b strings.Builder
	for _, c := range all {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.what)
		}
	}
	return b.String()
}
