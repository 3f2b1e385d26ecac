package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

func newDLQRedrive(g *globals) *cobra.Command {
	l := &letterBulk{bulk: bulk{globals: g, required: true}, event: store.OnRedrive, done: "redriven", target: &redriveTarget{}}
	topic := &topicRedrive{letterBulk: l}
	return g.command(g.described("dlq redrive", cobra.ArbitraryArgs), func(ctx context.Context, args []string) error {
		switch {
		case topic.from != "":
			return topic.run(ctx, args)
		case topic.group != "":
			return usagef("--group is for --from")
		}
		if err := l.target.resolve(g); err != nil {
			return err
		}
		return l.run(ctx, args)
	}, l, l.target, topic)
}

// topicRedrive runs dlq redrive --from.
type topicRedrive struct {
	*letterBulk
	from, group string
}

// register adds the flags that a redrive has beyond those of other verbs.
func (r *topicRedrive) register(fs *pflag.FlagSet) {
	fs.StringVar(&r.from, "from", "", "redrive what lies on a topic of a broker, such as kafka://host:9092/orders.dlq, without an office")
	fs.StringVar(&r.group, "group", "", "consumer group that remembers what was sent of --from (default nixie-redrive.TOPIC)")
	fs.StringArrayVar(&r.headers, "header", nil,
		"only what has this header of its sender, as NAME=VALUE or NAME, with --filter or alone; can be repeated")
	fs.StringVar(&r.token, "token", "", "move exactly what a dry run showed and kept under this token")
	fs.BoolVar(&r.again, "again", false, "with --resume: also what died again in that operation")
	fs.Var(&r.wait, "wait", "wait so long at most until each letter has an outcome; 10m if no time is given")
	fs.Lookup("wait").NoOptDefVal = "10m"
	fs.BoolVar(&r.force, "force", false, "redrive also what is not redrivable or needs review")
	durationVar(fs, &r.expiresIn, "expires-in", 0, "a new expiry, so long after the redrive, for messages that have one")
	fs.IntVar(&r.maxRedrives, "max-redrives", 0, "skip what was redriven so often; 0 is the default, -1 no cap")
}

func (*topicRedrive) read(*globals) error { return nil }

func (r *topicRedrive) check(args []string) error {
	switch {
	case len(args) > 0 || r.resume != "":
		return usagef("--from goes on by itself, and its letters have no IDs: leave IDs and --resume out")
	case r.token != "" || r.again || r.wait > 0:
		return usagef("--token, --again and --wait are for letters of the office")
	case r.target.to == toQueue:
		return usagef("--to queue is for letters of the office: nixie dlq adopt takes those of a topic in")
	case !r.all && !r.picks():
		return usagef("nothing is chosen: give --filter, --where or --header, or --all for every record")
	case r.all && r.picks():
		return usagef("choose by --all, or by --filter, --where and --header")
	case r.max < 0:
		return usagef("--max is %d: give a positive number, or 0 for no limit", r.max)
	case r.force:
		return usagef("--force is for letters of the office")
	case r.expiresIn != 0:
		return usagef("--expires-in is for letters of the office that go to queues of the store: a broker keeps no expiry")
	}
	return r.canAsk()
}

func (r *topicRedrive) run(ctx context.Context, args []string) error {
	if err := r.check(args); err != nil {
		return err
	}
	from, err := r.channelAt(r.from)
	if err != nil {
		return usagef("--from: %w", err)
	}
	if from.Spends != "" && (!r.all || r.dry || r.max > 0) {
		return usagef("%s: give --all, without --dry-run and --max; or take the letters in with nixie dlq adopt, and choose there",
			from.Spends)
	}
	back := r.target.to == "" || r.target.to == r.from
	r.target.to = cmp.Or(r.target.to, r.from)
	if err := r.target.resolve(r.globals); err != nil {
		return err
	}
	if back { // each record goes to the topic where it died
		r.target.channel.Name = ""
	}
	r.group = cmp.Or(r.group, "nixie-redrive."+from.Name)
	reader, err := from.Read(ctx, r.group)
	if err != nil {
		return err
	}
	defer reader.Close()
	route, end, err := r.target.route(ctx, r.globals)
	if err != nil {
		return err
	}
	defer end()
	route.MaxRedrives = r.maxRedrives
	return r.do(func() (plan, error) {
		return plan{n: 1, ask: func(w io.Writer) {
			fmt.Fprintf(w, "about %d records of topic %s were not sent by group %s yet\n", reader.Left(), from.Name, r.group)
			if to := r.target.whichPartition(); to != "" {
				fmt.Fprintln(w, to)
			}
		}}, nil
	}, func() error {
		office, shut, err := r.officeIfAny()
		if err != nil {
			return err
		}
		defer shut()
		return r.move(ctx, redrive.Mover{
			Office: office, Actor: config.Actor(r.Env), Reason: r.reason, From: reader, Destination: route, Choose: r.choose(from.System),
			Max: r.max, Rate: r.perSecond, Stop: r.target.stop, Batch: r.target.batch(), DryRun: r.dry, Clock: r.Now,
			Progress: func(m redrive.Moved) {
				r.status("%d redriven, %d skipped, about %d to go", m.Redriven, m.Skipped, m.Left)
			},
		})
	})
}

// officeIfAny opens the office that may have the same letters, if there is a store.
func (r *topicRedrive) officeIfAny() (office store.DeadLetters, shut func(), err error) {
	st, err := r.open(app.Options{MustExist: true, Clock: r.Now})
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return nil, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	return st, func() { _ = st.Close() }, nil // everything that counts is committed
}

// picks reports whether flags choose records that are not all.
func (r *topicRedrive) picks() bool {
	return r.choice.text != "" || r.choice.where != "" || len(r.headers) > 0
}

// choose returns the choice of --filter, --where and --header; nil chooses all.
func (r *topicRedrive) choose(system string) func(*broker.Record) bool {
	if !r.picks() {
		return nil
	}
	f, expr, now := r.choice.filter, r.choice.expr, r.Now()
	if r.choice.text != "" {
		f = office.Unresolved(f)
	}
	return func(record *broker.Record) bool {
		headers := record.Headers
		if o := record.Original; o != nil {
			headers = slices.Concat(headers, o.Headers)
		}
		if !hasAll(headers, r.wanted) {
			return false
		}
		if r.choice.text == "" && expr == nil {
			return true
		}
		letter := broker.Adopted(system, record, "")
		return filter.MatchLetter(&f, &letter, now) && (expr == nil || expr.Matches(&letter))
	}
}

// movedReport is the JSON of dlq redrive --from.
type movedReport struct {
	DryRun  bool   `json:"dry_run"`
	Group   string `json:"group"`
	Stopped bool   `json:"stopped"` // by --stop-after
	redrive.Moved
}

// move redrives the records and reports.
func (r *topicRedrive) move(ctx context.Context, m redrive.Mover) error {
	done, err := m.Run(ctx)
	if done.Read > 0 {
		r.status("")
	}
	by := (*redrive.StoppedError)(nil)
	report := movedReport{r.dry, r.group, errors.As(err, &by), done}
	if printing := r.object(report, func(w io.Writer) { r.print(w, &done) }); printing != nil {
		return printing
	}
	r.sayUnanswered(done.Unanswered)
	switch {
	case report.Stopped:
		r.say("%v; about %d records to go: once that is fixed, run the same command again", err, done.Left)
		return exit(ExitPartly)
	case err != nil && ctx.Err() != nil:
		r.say("about %d records to go; run the same command again: what was confirmed is not sent again", done.Left+done.Unanswered)
		return exit(ExitInterrupted)
	case err != nil:
		return err
	}
	return exitIf(done.Skipped > 0, ExitPartly)
}

func (r *topicRedrive) print(w io.Writer, done *redrive.Moved) {
	fmt.Fprintf(w, "%s %s%s (group %s)\n", plural(done.Redriven, "record"), either(r.dry, "would be redriven", "redriven"), counts(
		count{done.Quarantined, "put into quarantine"}, count{done.Skipped, "skipped"}, count{done.Elsewhere, "moved on by the office"},
		count{done.Passed, "not chosen"}, count{done.Unanswered, "without an answer"}, count{done.Left, "not looked at"},
		count{done.DiedAgain, "died again by now"}), r.group)
	var to []office.Count
	for _, name := range slices.Sorted(maps.Keys(done.To)) {
		to = append(to, office.Count{Value: name, Count: done.To[name]})
	}
	printCounts(w, "To topic", to)
	if to := r.target.whichPartition(); to != "" && r.dry {
		fmt.Fprintln(w, to)
	}
	printRefused(w, done.Refused)
}
