package match

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// options are the flags of a run.
type options struct {
	rounds     int
	scenarios  []contest.Scenario
	entrants   []contest.Entrant
	aim        time.Duration // length of a measurement
	size       int           // messages of every measurement; 0 means calibrated
	folder     string
	profile    string
	burden     int
	steady     time.Duration // of a constant load; 0 means a comparison
	rate       int
	json       bool
	reportOnly bool
	readme     string // document that gets the run
}

// The bounds of the options.
const (
	maxRounds = 100
	minAim    = 10 * time.Millisecond
	maxAim    = time.Minute
	minSize   = 100
	maxSize   = 5_000_000
	maxBurden = 1_000_000
	maxSteady = 24 * time.Hour
	maxRate   = 1_000_000
)

func (p *Programme) parse(args []string, log io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.rounds, "rounds", cmp.Or(p.Rounds, 5), "how often everything is measured")
	usage := "what is measured, with commas between"
	if len(p.Asked) > 0 {
		usage += "; with a burden, when they are named: " + names(p.Asked, scenarioName)
		flags.IntVar(&o.burden, "burden", 100_000, "messages behind the dead one of a stream; ten times as many are scheduled")
	}
	scenarios := flags.String("scenarios", names(p.Scenarios, scenarioName), usage)
	libraries := flags.String("libraries", names(p.Entrants, nameOf), "who takes part, with commas between")
	flags.DurationVar(&o.aim, "time", cmp.Or(p.Aim, 1500*time.Millisecond), "aimed length of a measurement")
	flags.IntVar(&o.size, "size", 0, "messages of every measurement; 0 is as many as the time takes")
	flags.StringVar(&o.folder, "dir", os.TempDir(),
		"folder for the files, on the disk that is to be measured; what is made there is removed")
	flags.DurationVar(&o.steady, "steady", 0,
		"instead of all this: how long to produce and consume at -rate, with a line each minute; needs one scenario and one library")
	flags.IntVar(&o.rate, "rate", 5000, "messages a second of -steady")
	flags.StringVar(&o.profile, "cpuprofile", "", "file for a processor profile of the measured part; needs one scenario and one library")
	flags.BoolVar(&o.json, "json", false, "print everything as JSON")
	flags.BoolVar(&o.reportOnly, "report", false, "exit with 0 also when a target is short")
	flags.StringVar(&o.readme, "readme", "", "document whose section on this run is written anew, between its marks")
	if p.Flags != nil {
		p.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.scenarios, err = chosen("scenario", *scenarios, slices.Concat(p.Scenarios, p.Asked), scenarioName); err != nil {
		return o, err
	}
	if o.entrants, err = chosen("library", *libraries, p.Entrants, nameOf); err != nil {
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
	case o.burden < 0 || o.burden > maxBurden:
		return fmt.Errorf("-burden is %d: give 0 to %d", o.burden, maxBurden)
	case o.steady < 0 || o.steady > maxSteady || o.steady > 0 && (o.rate < 1 || o.rate > maxRate):
		return fmt.Errorf("-steady is %s at -rate %d: give up to %s, and 1 to %d", o.steady, o.rate, maxSteady, maxRate)
	case o.steady > 0 && (len(o.scenarios) != 1 || len(o.entrants) != 1 || !o.scenarios[0].Drains() || o.scenarios[0].Burdened()):
		return errors.New("-steady needs one library and one scenario that drains, without a burden: give -scenarios and -libraries")
	case o.profile != "" && (len(o.scenarios) != 1 || len(o.entrants) != 1):
		return errors.New("-cpuprofile needs one scenario and one library: give -scenarios and -libraries")
	}
	return nil
}

// chosen returns those of all that a list names, in the order of all.
func chosen[T any](what, list string, all []T, name func(T) string) ([]T, error) {
	known := strings.Split(names(all, name), ",")
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("%s %q is not known: choose from %s", what, w, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(wanted, name(one)) }), nil
}

// names joins the names of all with commas.
func names[T any](all []T, name func(T) string) string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = name(one)
	}
	return strings.Join(list, ",")
}

func nameOf(e contest.Entrant) string { return e.Name }

func scenarioName(s contest.Scenario) string { return string(s) }
