package match

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the command: as a user starts it, or as the child that measures.
func (p *Programme) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var errShort = errors.New("a target is short")

// IsChild reports whether arguments are those of a child that measures. A test binary must then
// call Main.
func IsChild(args []string) bool { return len(args) == 2 && args[0] == childWord }

// Run runs the command without the process around it.
func (p *Programme) Run(ctx context.Context, args []string, out, log io.Writer) error {
	if IsChild(args) {
		return p.measureAsChild(ctx, args[1], out)
	}
	o, err := p.parse(args, log)
	if err != nil {
		return err
	}
	if o.steady > 0 {
		return p.steady(ctx, o, out)
	}
	report, err := p.compare(ctx, o, log)
	if err != nil {
		return err
	}
	if o.json {
		err = report.writeJSON(out)
	} else {
		report.write(out)
	}
	if err == nil && o.readme != "" {
		err = report.writeReadme(o.readme)
	}
	if err == nil && !o.reportOnly && report.short() {
		err = errShort
	}
	return err
}
