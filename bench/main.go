// Command bench measures Nixie and other queues for Go on SQLite, in one run and
// in turns, and checks that each of them did the work. README.md says what is
// measured and how to read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/backlite"
	"github.com/nixie-go/nixie/bench/entrants/goqite"
	"github.com/nixie-go/nixie/bench/entrants/ours"
	"github.com/nixie-go/nixie/bench/entrants/river"
	"github.com/nixie-go/nixie/bench/rawlimit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program: the one that people start, or the child that measures.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 2 && args[0] == childWord {
		return measureAsChild(ctx, args[1], out)
	}
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	report, err := compare(ctx, o, log)
	if err != nil {
		return err
	}
	if o.json {
		err = report.writeJSON(out)
	} else {
		report.write(out)
	}
	if err == nil && !o.reportOnly && report.short() {
		err = errors.New("a target is short")
	}
	return err
}

// all are the entrants, in the order they are reported.
func all() []contest.Entrant {
	return append([]contest.Entrant{ours.Entrant(), goqite.Entrant(), backlite.Entrant(), river.Entrant()}, rawlimit.Entrants()...)
}

// options are what was asked for.
type options struct {
	rounds      int
	scenarios   []contest.Scenario
	entrants    []contest.Entrant
	aim         time.Duration // length of a measurement
	size        int           // messages of every measurement; 0 is calibrated
	synchronous string        // of peers; "" is as each scenario asks for
	folder      string
	profile     string
	json        bool
	reportOnly  bool
}

// The bounds of the options.
const (
	maxRounds = 100
	minAim    = 10 * time.Millisecond
	maxAim    = time.Minute
	minSize   = 100
	maxSize   = 5_000_000
)

func parse(args []string, log io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	scenarios := flags.String("scenarios", joined(contest.Scenarios()), "what is measured, with commas between")
	libraries := flags.String("libraries", joined(names(all())), "who takes part, with commas between")
	flags.DurationVar(&o.aim, "time", 1500*time.Millisecond, "aimed length of a measurement")
	flags.IntVar(&o.size, "size", 0, "messages of every measurement; 0 is as many as the time takes")
	flags.StringVar(&o.synchronous, "peers-synchronous", "", "SQLite's setting for peers in every scenario: NORMAL or FULL; without it FULL where durable enqueues are measured (enqueue-1, enqueue-32) and NORMAL elsewhere. Nixie is at FULL always")
	flags.StringVar(&o.folder, "dir", os.TempDir(), "folder for the files, on the disk that is to be measured; what is made there is removed")
	flags.StringVar(&o.profile, "cpuprofile", "", "file for a processor profile of the measured part; needs one scenario and one library")
	flags.BoolVar(&o.json, "json", false, "print everything as JSON")
	flags.BoolVar(&o.reportOnly, "report", false, "exit with 0 also when a target is short")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.scenarios, err = chosen("scenario", *scenarios, contest.Scenarios(), func(s contest.Scenario) string { return string(s) }); err != nil {
		return o, err
	}
	if o.entrants, err = chosen("library", *libraries, all(), func(e contest.Entrant) string { return e.Name }); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag: see -help", flags.Arg(0))
	}
	return o, o.check()
}

func (o *options) check() error {
	switch {
	case o.rounds < 1 || o.rounds > maxRounds:
		return fmt.Errorf("-rounds is %d: give 1 to %d", o.rounds, maxRounds)
	case o.aim < minAim || o.aim > maxAim:
		return fmt.Errorf("-time is %s: give %s to %s", o.aim, minAim, maxAim)
	case o.size != 0 && (o.size < minSize || o.size > maxSize):
		return fmt.Errorf("-size is %d: give %d to %d, or 0", o.size, minSize, maxSize)
	case o.synchronous != "" && o.synchronous != "NORMAL" && o.synchronous != "FULL":
		return fmt.Errorf("-peers-synchronous is %q: give NORMAL or FULL", o.synchronous)
	case o.profile != "" && (len(o.scenarios) != 1 || len(o.entrants) != 1):
		return errors.New("-cpuprofile needs one scenario and one library: give -scenarios and -libraries")
	}
	return nil
}

// peersAt is SQLite's setting for peers in a scenario.
func (o *options) peersAt(s contest.Scenario) string {
	switch {
	case o.synchronous != "":
		return o.synchronous
	case s.Durable():
		return "FULL"
	}
	return "NORMAL"
}

// chosen picks from all those that a list names, in the order of all.
func chosen[T any](what, list string, all []T, name func(T) string) ([]T, error) {
	var known []string
	for _, one := range all {
		known = append(known, name(one))
	}
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("%s %q is not known: choose from %s", what, w, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(wanted, name(one)) }), nil
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = string(one)
	}
	return strings.Join(texts, ",")
}

func names(list []contest.Entrant) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.Name
	}
	return out
}
