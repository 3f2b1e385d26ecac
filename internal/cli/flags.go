package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// filterFlag is --filter.
type filterFlag struct {
	text   string
	queues []string // of --queue
	since  string
	filter nixie.Filter
}

func (f *filterFlag) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.text, "filter", "", `choose by key:value terms and words, such as 'reason:timeout -queue:mail "no route"'; `+
		"--queue NAME and --since 2h are short for two of them")
	if fs.Lookup("queue") == nil {
		fs.StringSliceVar(&f.queues, "queue", nil, "queue: of --filter")
		fs.Lookup("queue").Hidden = true
	}
	fs.StringVar(&f.since, "since", "", "died:>= of --filter; a duration is that long ago")
	fs.Lookup("since").Hidden = true
}

func (f *filterFlag) read(g *globals) (err error) {
	terms := []string{f.text, filter.Text(nixie.Filter{Queues: f.queues})}
	if f.since != "" {
		at := f.since
		if _, err := filter.ParseDuration(at); err == nil {
			at = "now-" + at
		}
		if _, err := office.ParseMoment(at, g.Now()); err != nil {
			return usagef("--since is %v, or a duration such as 2h", err)
		}
		terms = append(terms, "died:>="+at)
	}
	f.text = strings.TrimSpace(strings.Join(terms, " "))
	f.filter, err = filter.Parse(f.text, g.Now())
	return err
}

// reasonFlag is the --reason of commands on queues and streams.
type reasonFlag struct{ text string }

func (r *reasonFlag) register(fs *pflag.FlagSet) {
	fs.StringVar(&r.text, "reason", "", "why; recorded in the audit (required)")
}

func (r *reasonFlag) read(*globals) error {
	if strings.TrimSpace(r.text) == "" {
		return usagef("--reason is empty: say why, it is recorded in the audit")
	}
	return nil
}

// queuesFlag is the --queue of commands about some queues.
type queuesFlag struct{ names []string }

func (q *queuesFlag) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&q.names, "queue", nil, "of these queues (default all)")
}

func (*queuesFlag) read(*globals) error { return nil }

// pageFlags are --limit, --all and --cursor.
type pageFlags struct {
	limit  int
	all    bool
	cursor string
}

func (p *pageFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&p.limit, "limit", defaultLimit, "rows to show; 0 is all")
	fs.BoolVar(&p.all, "all", false, "show all rows")
	fs.StringVar(&p.cursor, "cursor", "", "go on where a list ended")
}

func (p *pageFlags) read(*globals) error {
	if p.limit < 0 {
		return usagef("--limit is %d: give a positive number, or 0 for all", p.limit)
	}
	return nil
}

// scanFlag is the --all of commands that count letters.
type scanFlag struct{ all bool }

func (*scanFlag) read(*globals) error { return nil }

func (l *scanFlag) register(fs *pflag.FlagSet) {
	fs.BoolVar(&l.all, "all", false, "look at all letters that may match, however long it takes")
}

func (l *scanFlag) word() store.Scan {
	if l.all {
		return store.ScanAll
	}
	return store.ScanRecent
}

// atLeastOne is a flag with a number of 1 or more.
type atLeastOne struct {
	name, usage string
	n           int
}

func (a *atLeastOne) register(fs *pflag.FlagSet) { fs.IntVar(&a.n, a.name, a.n, a.usage) }

func (a *atLeastOne) read(*globals) error {
	if a.n < 1 {
		return usagef("--%s is %d: give 1 or more", a.name, a.n)
	}
	return nil
}

// choice is a flag with one of several words.
type choice struct {
	value *string
	of    []string
}

func newChoice(value *string, initial string, of ...string) *choice {
	*value = initial
	return &choice{value, of}
}

func (c *choice) String() string { return *c.value }

func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set refuses other words and lists the allowed ones.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return fmt.Errorf("choose one of %s", strings.Join(c.of, ", "))
	}
	*c.value = text
	return nil
}

// formatFlag is the --format of an export. Without it -o decides.
type formatFlag struct {
	flags *pflag.FlagSet
	value string
}

func (f *formatFlag) register(fs *pflag.FlagSet) {
	f.flags = fs
	fs.Var(newChoice(&f.value, asJSONL, asJSONL, asCSV), "format", "how")
}

func (f *formatFlag) read(g *globals) error {
	if f.flags.Changed("format") || !f.flags.Changed("output") && !f.flags.Changed("json") {
		g.output = f.value
	}
	return g.format(asJSONL, asCSV)
}

// jobFlag names the job of commands that need one.
type jobFlag struct{ job, repo string }

func (j *jobFlag) register(fs *pflag.FlagSet) {
	fs.StringVar(&j.job, "job", "", "name of the job")
	registerRepo(fs, &j.repo)
}

// registerRepo adds the flag that names one of several jobs of a name.
func registerRepo(fs *pflag.FlagSet, repo *string) {
	fs.StringVar(repo, "repo", "",
		"folder in the git repository of the job (default that of the only job with the name, or the one you are in)")
}

func (j *jobFlag) read(*globals) error {
	if j.job == "" {
		return usagef("--job is empty: name the job, as nixie map run did")
	}
	return nil
}

// lengthFlag is a flag with a duration, which may be nothing; days and weeks are allowed.
type lengthFlag time.Duration

// durationVar defines a flag with a duration, which may be nothing.
func durationVar(fs *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	fs.Var((*lengthFlag)(d), name, usage)
}

func (l *lengthFlag) String() string { return (*durationFlag)(l).String() }

func (l *lengthFlag) Type() string { return "duration" }

// Set reads a duration. Which may be negative, and why not, its command says.
func (l *lengthFlag) Set(text string) error {
	positive := strings.TrimPrefix(text, "-")
	d, err := filter.ParseDuration(positive)
	if positive != text {
		d = -d
	}
	*l = lengthFlag(d)
	return err
}

// durationFlag is a flag with a positive duration; days and weeks are allowed.
type durationFlag time.Duration

func (s *durationFlag) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *durationFlag) Type() string { return "duration" }

// Set reads a duration.
func (s *durationFlag) Set(text string) error {
	d, err := filter.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("give a duration longer than nothing")
	}
	*s = durationFlag(d)
	return err
}

// rateFlag is a flag with a number of events in an interval.
type rateFlag struct {
	n     *int64
	every time.Duration
	text  string
}

func (p *rateFlag) String() string { return p.text }
func (p *rateFlag) Type() string   { return "N/duration" }

// Set reads 10/5m, or 10/h for 10/1h.
func (p *rateFlag) Set(text string) error {
	number, every, _ := strings.Cut(text, "/")
	if every != "" && strings.Contains("smhdw", every[:1]) {
		every = "1" + every
	}
	n, err := strconv.ParseInt(number, 10, 64)
	d, wrong := filter.ParseDuration(every)
	if err != nil || wrong != nil || n < 0 || d == 0 {
		return errors.New("give a number in a time, such as 10/5m or 100/h")
	}
	p.n, p.every, p.text = &n, d, text
	return nil
}
