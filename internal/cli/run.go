package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/where"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/store"
)

// runFlags are the flags of nixie run.
type runFlags struct {
	handling
	flags                          *pflag.FlagSet
	job, idField, jsonPath, format string
	stopAfter                      []string
	skipBad, mix                   bool
	verb                           string // run, or map run
	stepTexts                      []string
	steps                          []command.Step // instead of a command
	stored                         bool           // the items are in the store: no list is read
	given                          []string       // the flags, to be typed again
	choosing                       choosingFlags

	// Hooks of map run; nil does nothing.
	around func(*runner.Config)        // sets where commands run
	begin  func(context.Context) error // prepares that, after the checks that need no store
	// queue chooses the queue of the items in the store. New items get the headers.
	queue    func(context.Context, store.Store) (name string, of []nixie.Header, err error)
	after    func(io.Writer, runner.Summary) // prints the next commands for a job that is not done
	accepted func() error                    // called before the list is taken in, if it is
	// alongside starts what has to run while the job runs.
	alongside func(context.Context, store.Store) (end func() error, err error)
	flow      *workflowRun // of a workflow file
}

func newRun(g *globals) *cobra.Command {
	f := &runFlags{handling: handling{globals: g}, verb: "run"}
	cmd := f.command(g.described("run"), f.run)
	f.registerList(cmd.Flags())
	return groupFlags(cmd)
}

// registerList adds the flags of a job with a list.
func (f *runFlags) registerList(fs *pflag.FlagSet) {
	f.flags = fs
	f.register(fs, "the job, or of profile nixie")
	fs.StringVar(&f.idField, "id-field", items.DefaultIDField,
		"field that holds the id of an item; items without one are named by their content")
	fs.StringVar(&f.job, "job", "", "name of the job (default from the absolute path of ITEMS; standard input needs it)")
	fs.BoolVar(&f.skipBad, "skip-bad", false, "dead-letter unreadable items instead of refusing the list")
	fs.BoolVar(&f.mix, "mix", false, "also run unfinished items that the job has from another list")
	fs.StringVar(&f.jsonPath, "json-path", "", "where the items are in a JSON document, such as $.data.orders")
	fs.StringVar(&f.format, "format", string(items.Auto), "auto, jsonl, json, csv or lines")
	fs.StringArrayVar(&f.stepTexts, "step", nil,
		"instead of COMMAND: 'exec: PROGRAM ARG…', 'shell: SCRIPT' or 'agent: PROGRAM ARG…'; again for the next")
	fs.StringArrayVar(&f.stopAfter, "stop-after", nil, "stop by itself when more than this share of the items that ended in this run "+
		"died, from the tenth on, or this many; again for both; none: go on (default none)")
	f.registerPersistent(fs)
	f.choosing.register(fs)
}

// listFlag reports whether a flag tells how a list is read. Such a flag is not needed once the
// items are in the store.
func listFlag(name string) bool {
	switch name {
	case "id-field", "json-path", "format", "skip-bad", "where", "sort-by", "distinct", "offset", "max-items":
		return true
	}
	return false
}

// readFlags notes the given flags, to print the next command. Those that a workflow file sets later
// are none of them.
func (f *runFlags) readFlags() {
	if f.flow != nil {
		return
	}
	fromList := f.flags.Arg(0) != stdinList
	f.flags.Visit(func(flag *pflag.Flag) {
		switch {
		case flag.Name == "store" || flag.Name == "output" || flag.Name == "color":
			return // storeFlag adds --store, the others are only about this output
		case !fromList && listFlag(flag.Name):
			return
		}
		f.given = append(f.given, flagWords(flag)...)
	})
}

// stdinList is the name of standard input as a list.
const stdinList = "-"

func (f *runFlags) run(ctx context.Context, args []string, dash int) error {
	f.readFlags()
	if err := f.parseSteps(); err != nil {
		return err
	}
	list, cmd, err := f.listOf(args, dash)
	if err != nil {
		return err
	}
	cfg, err := f.config(ctx, list, cmd)
	if err != nil {
		return err
	}
	choice, err := f.choosing.choice()
	if err != nil {
		return err
	}
	r, err := runner.New(*cfg)
	if err != nil {
		return err
	}
	// Mistakes are found before a store is created. A workflow has its list after its setup only.
	var reader *items.Reader
	if !f.stored && f.flow == nil {
		if reader, err = f.openList(ctx, r, list, choice); err != nil {
			return err
		}
		defer reader.Close() //nolint:errcheck // it was only read
	}
	if f.begin != nil {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	st, err := f.open(ctx, app.Options{Owner: cfg.Owner, MustExist: f.stored})
	if err != nil {
		return err
	}
	defer f.close(st)
	r.Use(st)
	if f.queue != nil {
		var headers []nixie.Header
		if cfg.Job, headers, err = f.queue(ctx, st); err == nil {
			err = r.WorkOn(cfg.Job, headers)
		}
		if err != nil {
			return err
		}
	}
	if f.flow != nil {
		if f.flow.only {
			return f.flow.mergeNow(ctx, st, *cfg)
		}
		if list, err = f.flow.begin(ctx, st, *cfg); err != nil {
			return err
		}
		if list != "" {
			if reader, err = f.openList(ctx, r, list, choice); err != nil {
				return err
			}
			defer reader.Close() //nolint:errcheck // it was only read
		}
	}
	if err := f.take(ctx, r, cfg.Job, reader); err != nil {
		return err
	}
	if f.alongside == nil {
		return f.work(ctx, r, args)
	}
	end, err := f.alongside(ctx, st)
	if err != nil {
		return err
	}
	worked := f.work(ctx, r, args)
	if err := end(); err != nil {
		f.say("nixie: %v", err)
		return cmp.Or[error](worked, exit(ExitFailure))
	}
	return worked
}

// openList opens a list and checks it to the end.
func (f *runFlags) openList(ctx context.Context, r *runner.Runner, list string, choice *items.Selection) (*items.Reader, error) {
	reader, err := runner.OpenList(ctx, f.listOptions(list, choice))
	if err != nil {
		return nil, err
	}
	if err := checkFields(r, reader); err != nil {
		_ = reader.Close() // it was only read
		return nil, err
	}
	return reader, nil
}

// take enqueues new items of the list. Without a list all items are in the store.
func (f *runFlags) take(ctx context.Context, r *runner.Runner, job string, list *items.Reader) error {
	if list == nil {
		return r.Resume(ctx)
	}
	in, err := r.Intake(ctx, list, func(left runner.Leftovers) error { return f.accept(job, left) })
	if err == nil {
		f.announce(job, in)
	}
	return err
}

// accept refuses leftovers of another list, unless they are wanted. A list from standard input is
// never the same again, so they are told only.
func (f *runFlags) accept(job string, left runner.Leftovers) error {
	if err := f.refuse(job, left); err != nil || f.accepted == nil {
		return err
	}
	return f.accepted()
}

func (f *runFlags) refuse(job string, left runner.Leftovers) error {
	if left.Items == 0 {
		return nil
	}
	such := make([]string, len(left.Names))
	for i, name := range left.Names {
		such[i] = escapeLine(name)
	}
	text := fmt.Sprintf("job %s has %s that the list does not have, such as %s", escapeLine(job),
		plural(int64(left.Items), "unfinished item"), strings.Join(such, ", "))
	if f.mix || f.flags.Arg(0) == stdinList {
		f.say("%s: this command runs them too", text)
		return nil
	}
	return usagef("%s\ngive --mix to run them with this command too, or another --job; nothing was enqueued", text)
}

func (f *runFlags) listOptions(list string, choice *items.Selection) items.Options {
	if list == stdinList && f.InTTY {
		fmt.Fprintln(f.Err, "nixie: reading items from the terminal; end them with Ctrl-D")
	}
	return items.Options{
		Path: list, Stdin: f.In, Format: items.Format(f.format), JSONPath: f.jsonPath, IDField: f.idField, SkipBad: f.skipBad,
		Select: choice,
	}
}

// checkFields refuses a command that uses a field which the first item does not have: it would fail
// for every item.
func checkFields(r *runner.Runner, list *items.Reader) error {
	field, known, err := r.MissingField(list)
	if err != nil || field == "" {
		return err
	}
	hint := ""
	if like := nearTo(field, known); len(like) > 0 {
		hint = fmt.Sprintf(": did you mean {%s}?", strings.Join(like, "} or {"))
	}
	has := "none that is a text or a number"
	if more := len(known) - shownFields; more > 0 {
		has = fmt.Sprintf("%s and %d more", strings.Join(known[:shownFields], ", "), more)
	} else if len(known) > 0 {
		has = strings.Join(known, ", ")
	}
	return usagef("the first item has no field for {%s}%s\n"+
		"it has %s; what only some items have is in their environment, as NIXIE_FIELD_<NAME>",
		field, hint, has)
}

// shownFields limits the fields of an item that are named.
const shownFields = 20

// parseSteps reads --step.
func (f *runFlags) parseSteps() error {
	if f.persistent && len(f.stepTexts) > 1 {
		return usagef("--persistent is for one command or step: write persistent before the type of each step that stays, " +
			"as in --step 'persistent exec: python3 worker.py'")
	}
	for _, text := range f.stepTexts {
		s, err := command.ParseStep(text)
		if err != nil {
			return err
		}
		s.Persistent = s.Persistent || f.persistent
		f.steps = append(f.steps, s)
	}
	return nil
}

// listOf returns ITEMS and the command.
func (f *runFlags) listOf(args []string, dash int) (list string, cmd []string, err error) {
	lists := args
	if dash >= 0 {
		lists, cmd = args[:dash], args[dash:]
	}
	if f.flow != nil {
		return "", nil, nil
	}
	switch {
	case len(lists) == 0:
		return "", nil, usagef("no list: nixie %s ITEMS -- COMMAND [ARG…]", f.verb)
	case len(f.steps) > 0 && dash >= 0:
		return "", nil, usagef("--step and a command after --: give one of them")
	case len(f.steps) == 0 && len(cmd) == 0:
		return "", nil, usagef("no command: give it after --, as in nixie %s %s -- ./handle {id}", f.verb, args[0])
	case len(lists) > 1:
		return "", nil, usagef("%d lists: give one, and the command after --", len(lists))
	}
	return lists[0], cmd, nil
}

// name names the job after its list, unless it has a name.
func (f *runFlags) name(list string) error {
	if f.job != "" {
		return nil
	}
	if list == stdinList {
		return usagef("standard input has no name: give --job NAME")
	}
	abs, err := filepath.Abs(list)
	f.job = runner.DefaultJob(abs)
	return err
}

func (f *runFlags) config(ctx context.Context, list string, cmd []string) (*runner.Config, error) {
	if err := f.name(list); err != nil {
		return nil, err
	}
	stop, err := parseStops(f.stopAfter)
	if err != nil {
		return nil, err
	}
	cfg, err := f.handling.config(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if len(f.steps) > 0 {
		cfg.Steps = f.steps
	}
	cfg.Job = f.job
	cfg.StopAfter = stop
	if f.around != nil {
		f.around(cfg)
	}
	return cfg, nil
}

// parseStops reads --stop-after of a job, which may be given twice: a number and a share.
func parseStops(texts []string) (stop runner.StopAfter, err error) {
	for _, text := range texts {
		one, err := parseStop(text)
		switch {
		case err != nil:
			return stop, err
		case text == "none" && len(texts) > 1, one.After > 0 && stop.Dead > 0, one.Share > 0 && stop.Share > 0:
			return stop, usagef("--stop-after is %s: give at most one number and one share", strings.Join(texts, " and "))
		case one.After > 0:
			stop.Dead = int64(one.After)
		default:
			stop.Share = max(one.Share, 0)
		}
	}
	return stop, nil
}

func (f *runFlags) announce(job string, in runner.Intake) {
	fmt.Fprintf(f.Err, "job %s: %s, %d new", escapeLine(job), plural(in.Items, "item"), in.Added)
	if in.Bad > 0 {
		fmt.Fprintf(f.Err, ", %d unreadable", in.Bad)
	}
	if in.Empty > 0 {
		fmt.Fprintf(f.Err, ", %s of separators only skipped", plural(in.Empty, "row"))
	}
	fmt.Fprintln(f.Err)
	if in.LeftOut > 0 {
		f.say("%s", runner.LeftOutText(plural(in.LeftOut, "item")))
	}
}

// work runs the job under a progress display.
func (f *runFlags) work(ctx context.Context, r *runner.Runner, args []string) error {
	var summary runner.Summary
	err := f.drive(ctx, r, false, func(ctx context.Context) (err error) {
		summary, err = r.Run(ctx)
		return err
	})
	if err == nil && f.flow != nil {
		err = f.flow.end(ctx, &summary)
	}
	if err != nil {
		return err
	}
	return f.report(summary, args)
}

// choosingFlags choose items of a list, and their order.
type choosingFlags struct {
	where, sort, distinct string
	offset, most          int
}

func (c *choosingFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.where, "where", "", "only items for which an expression holds, such as 'item.priority > 5'")
	fs.StringVar(&c.sort, "sort-by", "", "order of the items, such as 'priority DESC NULLS FIRST, name' (default as they stand)")
	fs.StringVar(&c.distinct, "distinct", "", "of items with the same value in this field only the first")
	fs.IntVar(&c.offset, "offset", 0, "leave out this many items")
	fs.IntVar(&c.most, "max-items", 0, "take at most this many items; 0 is all")
}

// choice returns the choice of the flags; nil is all.
func (c *choosingFlags) choice() (*items.Selection, error) {
	switch {
	case c.offset < 0:
		return nil, usagef("--offset is %d: give a positive number, or leave it out", c.offset)
	case c.most < 0:
		return nil, usagef("--max-items is %d: give a positive number, or 0 for all", c.most)
	case *c == choosingFlags{}:
		return nil, nil //nolint:nilnil // all items are no choice
	}
	choice := &items.Selection{Distinct: c.distinct, Offset: c.offset, Max: c.most}
	var err error
	if choice.Sort, err = items.ParseSort(c.sort); err != nil || c.where == "" {
		return choice, err
	}
	expression, err := where.Parse(c.where)
	if err != nil {
		return nil, err
	}
	choice.Keep = func(item *items.Item) bool { return expression.Matches(itemLetter(item)) }
	return choice, nil
}

// itemLetter makes a letter of an item, for an expression over letters.
func itemLetter(item *items.Item) *nixie.Letter {
	m := nixie.Message{Key: item.Name, Body: item.Body}
	if item.IsLine() {
		m.Type = items.TypeLine
	}
	return &nixie.Letter{Message: m}
}
