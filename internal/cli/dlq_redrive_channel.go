package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

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

// channelMove is dlq redrive --from.
type channelMove struct {
	*moving
	from, group string
}

func (c *channelMove) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.from, "from", "", "redrive what lies on a topic of a broker, such as kafka://host:9092/orders.dlq, without an office")
	fs.StringVar(&c.group, "group", "", "consumer group that remembers what was sent of --from (default nixie-redrive.TOPIC)")
	fs.StringArrayVar(&c.headers, "header", nil, "only what has this header of its sender, as NAME=VALUE or NAME, with --filter or alone; can be repeated")
}

// alone refuses flags that are for --from.
func (c *channelMove) alone() error {
	if c.group != "" {
		return usagef("--group is for --from")
	}
	return nil
}

func (c *channelMove) check(args []string) error {
	switch {
	case len(args) > 0 || c.resume != "":
		return usagef("--from goes on by itself, and its letters have no IDs: leave IDs and --resume out")
	case c.token != "" || c.again || c.wait > 0:
		return usagef("--token, --again and --wait are for letters of the office")
	case c.sending.to == toQueue:
		return usagef("--to queue is for letters of the office: nixie dlq adopt takes those of a topic in")
	case !c.all && !c.picks():
		return usagef("nothing is chosen: give --filter, --where or --header, or --all for every record")
	case c.all && c.picks():
		return usagef("choose by --all, or by --filter, --where and --header")
	case c.max < 0:
		return usagef("--max is %d: give a positive number, or 0 for no limit", c.max)
	case c.force:
		return usagef("--force is for letters of the office")
	case !c.yes && !c.dry && (!c.InTTY || !c.ErrTTY):
		return usagef("no terminal to ask on: give --yes, or --dry-run to see what would be done")
	}
	return nil
}

func (c *channelMove) run(ctx context.Context, args []string) error {
	if err := c.check(args); err != nil {
		return err
	}
	rate, err := parseRate(c.rate)
	if err != nil {
		return err
	}
	stop, err := c.sending.stop()
	if err != nil {
		return err
	}
	if err := c.filter.read(c.globals); err != nil {
		return err
	}
	from, err := c.broker(c.from)
	if err != nil {
		return usagef("--from: %w", err)
	}
	if c.sending.to == "" {
		c.sending.to = c.from
	}
	if err := c.sending.check(c.globals); err != nil {
		return err
	}
	if c.sending.to == c.from {
		c.sending.channel.Name = ""
	}
	if c.group == "" {
		c.group = "nixie-redrive." + from.Name
	}
	reader, err := from.Read(ctx, c.group)
	if err != nil {
		return err
	}
	defer reader.Close()
	route, end, err := c.sending.route(ctx, c.globals)
	if err != nil {
		return err
	}
	defer end()
	route.MaxRedrives = c.maxRedrives
	choose, err := c.choose(c.filter.filter, from.System)
	if err != nil {
		return err
	}
	if !c.yes && !c.dry {
		fmt.Fprintf(c.Err, "about %d records of topic %s were not sent by group %s yet\n", reader.Left(), from.Name, c.group)
		if err := c.confirm(); err != nil {
			return err
		}
	}
	office, shut, err := c.beside()
	if err != nil {
		return err
	}
	defer shut()
	return c.move(ctx, redrive.Mover{
		Office: office, Actor: config.Actor(c.Env), Reason: c.reason, From: reader, Route: route, Choose: choose, Max: c.max, Rate: rate, Stop: stop, Batch: c.batch(), DryRun: c.dry, Clock: c.Now, Progress: c.progress(),
	})
}

// beside is the office that may have the same letters, if there is a store.
func (c *channelMove) beside() (office store.DeadLetters, shut func(), err error) {
	st, err := c.open(app.Options{MustExist: true, Clock: c.Now})
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return nil, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	return st, func() { _ = st.Close() }, nil // everything that counts is committed
}

// batch is small where each record takes its time.
func (c *channelMove) batch() int {
	if c.sending.pipe != "" {
		return pipeBatch
	}
	return 0
}

const pipeBatch = 20

// picks reports whether flags choose records that are not all.
func (c *channelMove) picks() bool {
	return c.filter.text != "" || c.filter.where != "" || len(c.headers) > 0
}

// choose is what --filter, --where and --header say; nil is all.
func (c *channelMove) choose(f nixie.Filter, system string) (func(*broker.Record) bool, error) {
	headers, err := parseHeaders(c.headers)
	if err != nil {
		return nil, err
	}
	if !c.picks() {
		return nil, nil
	}
	if c.filter.text != "" {
		f = office.Unresolved(f)
	}
	now := c.Now()
	return func(r *broker.Record) bool {
		if !hasAll(r.Headers, headers) {
			return false
		}
		if c.filter.text == "" && c.filter.expr == nil {
			return true
		}
		l := broker.Adopted(system, r, "")
		return filter.MatchLetter(&f, &l, now) && (c.filter.expr == nil || c.filter.expr.Matches(&l))
	}, nil
}

// movedReport is what dlq redrive --from prints.
type movedReport struct {
	DryRun  bool   `json:"dry_run"`
	Group   string `json:"group"`
	Stopped bool   `json:"stopped"` // by itself
	redrive.Moved
}

// move does it and says how it went.
func (c *channelMove) move(ctx context.Context, m redrive.Mover) error {
	done, err := m.Run(ctx)
	if c.ErrTTY && done.Read > 0 {
		fmt.Fprint(c.Err, "\r\x1b[K") // the line of progress
	}
	by := (*redrive.StoppedError)(nil)
	report := movedReport{c.dry, c.group, errors.As(err, &by), done}
	if printing := c.object(report, func(w io.Writer) { c.print(w, &done) }); printing != nil {
		return printing
	}
	if done.Unanswered > 0 {
		c.say("%d of those sent have no answer, and may be there: they are sent again under the same x-redrive-id", done.Unanswered)
	}
	switch {
	case report.Stopped:
		c.say("%v; about %d records to go: once that is mended, run the same command again", err, done.Left)
		return exit(ExitPartly)
	case err != nil && ctx.Err() != nil:
		c.say("about %d records to go; run the same command again: what was confirmed is not sent again", done.Left+done.Unanswered)
		return exit(ExitInterrupted)
	case err != nil:
		return err
	case done.Skipped > 0:
		return exit(ExitPartly)
	}
	return nil
}

func (c *channelMove) print(w io.Writer, done *redrive.Moved) {
	verb := "redriven"
	if c.dry {
		verb = "would be redriven"
	}
	fmt.Fprintf(w, "%s %s", plural(done.Redriven, "record"), verb)
	for _, part := range [...]struct {
		n    int64
		what string
	}{{done.Quarantined, "put into quarantine"}, {done.Skipped, "skipped"}, {done.Elsewhere, "moved on by the office"}, {done.Passed, "not chosen"}, {done.Unanswered, "without an answer"}, {done.Left, "not looked at"}, {done.DiedAgain, "died again by now"}} {
		if part.n > 0 {
			fmt.Fprintf(w, ", %d %s", part.n, part.what)
		}
	}
	fmt.Fprintf(w, " (group %s)\n", c.group)
	var to []office.Count
	for _, name := range slices.Sorted(maps.Keys(done.To)) {
		to = append(to, office.Count{Value: name, Count: done.To[name]})
	}
	printCounts(w, "To topic", to)
	for i, r := range done.Refused {
		if i == shownRefused {
			break
		}
		fmt.Fprintf(w, "  %s\n", escapeLine(r.Why))
	}
}

// progress shows how far the move is, on a terminal only.
func (c *channelMove) progress() func(redrive.Moved) {
	if !c.ErrTTY {
		return nil
	}
	return func(m redrive.Moved) {
		fmt.Fprintf(c.Err, "\r\x1b[K%d redriven, %d skipped, about %d to go", m.Redriven, m.Skipped, m.Left)
	}
}
