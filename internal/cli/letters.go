package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/nixie-go/nixie/broker"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/where"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// letterFlags choose letters by --filter and --where, and in nixie map dlq by the job.
type letterFlags struct {
	filterFlag
	where string
	of    *jobLetters         // nil: of all queues
	named []office.FamilyView // families of the filter
	expr  *where.Expr         // of --where
	say   func(format string, args ...any)
}

func (c *letterFlags) register(fs *pflag.FlagSet) {
	c.filterFlag.register(fs)
	fs.StringVar(&c.where, "where", "", `choose by an expression over the item too, such as 'item.priority > 5 && failure_count < 3'`)
	if c.of != nil {
		c.of.register(fs)
		fs.BoolVar(&c.of.eligible, "eligible", false,
			"only letters that may be retried as they are: redrivable, and in no need of a review")
	}
}

func (c *letterFlags) read(g *globals) (err error) {
	c.say = g.say
	if err := c.filterFlag.read(g); err != nil {
		return err
	}
	if c.where != "" {
		if c.expr, err = where.Parse(c.where); err != nil {
			return err
		}
	}
	if c.of != nil {
		err = c.of.narrow(&c.filter)
	}
	return err
}

// resolve completes a filter with the job and with the letters that --where chooses.
func (c *letterFlags) resolve(ctx context.Context, o *office.Office, f nixie.Filter) (nixie.Filter, error) {
	f, err := c.confine(ctx, o, f)
	if err != nil || c.expr == nil {
		return f, err
	}
	if f.IDs, err = c.pick(ctx, o, f, nil); len(f.IDs) > maxPicked {
		err = usagef("--where chooses %d letters, the most at once are %d: choose fewer by --filter", len(f.IDs), maxPicked)
	}
	return f, err
}

// confine restricts a filter to the job, if there is one, and names the groups of its families.
func (c *letterFlags) confine(ctx context.Context, o *office.Office, f nixie.Filter) (nixie.Filter, error) {
	if c.of != nil {
		queue, err := c.of.queue(ctx, o)
		if err == nil {
			f.Queues, err = c.of.withPhases(ctx, c.of.jobFlag, queue)
		}
		if err != nil {
			return f, err
		}
		c.text = filter.Text(f)
	}
	f, named, err := o.Resolve(ctx, f)
	c.named = named
	return f, err
}

// maxPicked limits how many letters are chosen by their IDs.
const maxPicked = 10_000

// pick returns the letters of a filter, latest death first, for which --where and the rest hold.
// When there are none it returns an ID that no letter has, because an empty list would choose all.
func (c *letterFlags) pick(
	ctx context.Context, o *office.Office, f nixie.Filter, rest func(*nixie.Letter) bool,
) (ids []nixie.ID, err error) {
	looked := int64(0)
	letters := o.AllLetters(ctx, f, c.expr != nil)
	if c.expr != nil && rest == nil && !c.expr.Failures() {
		letters = o.AllBodies(ctx, f)
	}
	for l, err := range letters {
		if err != nil {
			return nil, err
		}
		looked++
		if (c.expr == nil || c.expr.Matches(&l)) && (rest == nil || rest(&l)) {
			ids = append(ids, l.ID)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	if c.expr != nil && looked > 0 && len(c.expr.Missing()) > 0 {
		c.say("none of %s has %s", plural(looked, "letter"), strings.Join(c.expr.Missing(), ", "))
	}
	return []nixie.ID{{}}, nil
}

// jobLetters restricts a choice to the letters of one job of nixie map.
type jobLetters struct {
	*globals
	jobFlag
	eligible bool
}

func (j *jobLetters) register(fs *pflag.FlagSet) {
	fs.StringVar(&j.job, "job", "", "name of the job (default the only one that has letters)")
	registerRepo(fs, &j.repo)
}

// narrow adds to a filter what is known before a store is opened.
func (j *jobLetters) narrow(f *nixie.Filter) error {
	if len(f.Queues) > 0 {
		return usagef("queue: in --filter: letters are those of one job, which --job names")
	}
	if j.eligible {
		yes, no := true, false
		f.Redrivable, f.NeedsReview = &yes, &no
	}
	return nil
}

// queue returns the queue of the job. Without --job it looks for the only job that has letters.
func (j *jobLetters) queue(ctx context.Context, o *office.Office) (string, error) {
	if j.job != "" {
		return j.jobQueue(ctx, o, j.jobFlag)
	}
	all, err := o.Queues(ctx)
	if err != nil {
		return "", err
	}
	var jobs []string
	for _, q := range all {
		name, _, _ := mapreduce.PhaseOf(q.Name)
		if job := itemfile.JobOf(name); q.Dead > 0 && itemfile.QueueOf(job) == name && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	switch len(jobs) {
	case 0:
		return "", nixie.Errorf(nixie.CodeNotFound, "no job has dead letters; --job names one to look at what it had")
	case 1:
		queue := mapreduce.QueueOf(jobs[0])
		j.jobFlag, err = j.ofQueue(queue)
		return queue, err
	}
	slices.Sort(jobs)
	return "", usagef("%d jobs have dead letters: name one of %s by --job", len(jobs), strings.Join(jobs, ", "))
}

// ids returns the letters of the items of a job; a nil receiver returns what was typed.
func (j *jobLetters) ids(ctx context.Context, o *office.Office, args []string) ([]string, error) {
	if j == nil {
		return args, nil
	}
	queue, err := j.queue(ctx, o)
	if err != nil {
		return nil, err
	}
	queues, err := j.withPhases(ctx, j.jobFlag, queue)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(args))
	for i, arg := range args {
		f := nixie.Filter{Queues: queues, Keys: []string{arg}}
		if id, err := nixie.ParseID(arg); err == nil {
			f.Keys, f.IDs = nil, []nixie.ID{id}
		}
		found, _, err := o.Letters(ctx, f, store.Page{Limit: 1})
		ending, is := filter.Ending(arg)
		if is && len(found) == 0 && err == nil {
			found, _, err = o.Letters(ctx, nixie.Filter{Queues: f.Queues, Endings: []string{ending}}, store.Page{Limit: 2})
		}
		switch {
		case err != nil:
			return nil, err
		case len(found) == 1:
			ids[i] = found[0].ID.String()
		case len(found) > 1:
			ids[i] = ending // the office lists the candidates
		default:
			return nil, nixie.Errorf(nixie.CodeNotFound,
				"job %s has no letter of item %q: nixie map dlq list --job %[1]s lists what there is", j.job, arg)
		}
	}
	return ids, nil
}

// wantedHeader is a --header by which letters or records are chosen.
type wantedHeader struct {
	name, value string
	exact       bool // the value has to match as well
}

// parseHeaders reads --header.
func parseHeaders(texts []string) (all []wantedHeader, err error) {
	for _, text := range texts {
		name, value, exact := strings.Cut(text, "=")
		if name == "" {
			return nil, usagef("--header is %q: give it as NAME=VALUE, or NAME alone", text)
		}
		all = append(all, wantedHeader{name, value, exact})
	}
	return all, nil
}

// hasAll reports whether a record has each of the headers.
func hasAll(headers []broker.RecordHeader, wanted []wantedHeader) bool {
	for _, want := range wanted {
		if !slices.ContainsFunc(headers, func(h broker.RecordHeader) bool {
			return strings.EqualFold(h.Name, want.name) && (!want.exact || string(h.Value) == want.value)
		}) {
			return false
		}
	}
	return true
}
