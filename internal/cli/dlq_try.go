package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// dlqTry runs a command on copies of letters.
type dlqTry struct {
	handling
	choice letterFlags
	all    bool
	max    int
}

func newDLQTry(g *globals) *cobra.Command {
	f := &dlqTry{handling: handling{globals: g, grace: -1}}
	cmd := f.command(g.described("dlq try"), f.run)
	f.register(cmd.Flags())
	return cmd
}

func (f *dlqTry) register(fs *pflag.FlagSet) {
	f.choice.register(fs)
	fs.BoolVar(&f.all, "all", false, "of all letters: needed without IDs and filter")
	fs.IntVar(&f.max, "max", 10, "at most this many letters, the oldest deaths first")
	f.registerCommand(fs)
}

// mostTried bounds --max.
const mostTried = 1000

func (f *dlqTry) run(ctx context.Context, args []string, dash int) error {
	if err := f.choice.read(f.globals); err != nil {
		return err
	}
	ids := args[:max(dash, 0)]
	chosen := 0
	for _, given := range [...]bool{len(ids) > 0, f.choice.text+f.choice.where != "", f.all} {
		if given {
			chosen++
		}
	}
	switch {
	case dash < 0 || dash == len(args):
		return usagef("no command: give it after --, as in nixie dlq try --filter queue:orders -- ./handle {id}")
	case chosen != 1:
		return usagef("choose by one of IDs, --filter with --where, and --all")
	case f.max < 1 || f.max > mostTried:
		return usagef("--max is %d: give a number from 1 to %d", f.max, mostTried)
	}
	cfg, err := f.commandConfig(args[dash:])
	if err != nil {
		return err
	}
	f.resultsByID()
	cfg.Answers.Make = f.answerTo                                                    // they have a result file; no answer is sent
	cfg.Queues, cfg.Breaker = []string{"letters"}, policy.BreakerRules{Failures: -1} // the name is for the next check alone
	if _, err := runner.New(*cfg); err != nil {
		return err
	}
	return f.withStore(app.Options{MustExist: true, Owner: cfg.Owner, Clock: f.Now}, func(st store.Store) error {
		o, err := office.New(office.Config{Store: st, Actor: config.Actor(f.Env), Clock: f.Now})
		if err != nil {
			return err
		}
		letters, err := f.letters(ctx, o, ids)
		if err != nil {
			return err
		}
		return f.try(ctx, o, st, cfg, letters, args[dash:])
	})
}

// letters returns the chosen letters without their bodies, the oldest deaths first.
func (f *dlqTry) letters(ctx context.Context, o *office.Office, args []string) (letters []nixie.Letter, err error) {
	var ids []nixie.ID
	if len(args) > 0 {
		ids, err = o.LetterIDs(ctx, args)
	} else if f.choice.filter, err = f.choice.confine(ctx, o, f.choice.filter); err != nil {
		return nil, err
	} else if ids, err = f.choice.pick(ctx, o, office.Dead(f.choice.filter), nil); err == nil {
		ids = ids[max(len(ids)-f.max, 0):]
	}
	if err != nil {
		return nil, err
	}
	if len(ids) > f.max {
		return nil, usagef("%d letters are named, --max is %d: give a higher one", len(ids), f.max)
	}
	letters, _, err = o.Letters(ctx, nixie.Filter{IDs: ids}, store.Page{Limit: len(ids)})
	slices.Reverse(letters) // they come latest death first
	return letters, err
}

// try runs the command and reports.
func (f *dlqTry) try(
	ctx context.Context, o *office.Office, st store.Store, cfg *runner.Config, letters []nixie.Letter, cmd []string,
) error {
	report := tryReport{Groups: []tryGroup{}, Letters: []tryLetter{}}
	var copied []nixie.Letter
	order := map[nixie.ID]int{}
	for i := range letters {
		l := &letters[i]
		order[l.ID] = i
		if why := office.NoCopy(l); why != "" {
			report.add(l, trySkipped, "", why)
		} else {
			copied = append(copied, *l)
		}
	}
	if len(copied) > 0 {
		f.say("the command runs on %s: nothing of them is stored, but what it does elsewhere is real",
			plural(int64(len(copied)), "copy"))
		mask, err := f.mask.mask(f.Env)
		if err != nil {
			return err
		}
		if err := o.Tried(ctx, copied, mask.Text(quoteAll(cmd))); err != nil {
			return err
		}
		if err := f.runCopies(ctx, o, st, cfg, copied, report.judge); err != nil {
			return err
		}
	}
	slices.SortFunc(report.Letters, func(a, b tryLetter) int { return order[a.ID] - order[b.ID] })
	if err := f.object(report, func(w io.Writer) { f.print(w, &report) }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		f.say("%s not tried", plural(int64(len(letters)-len(report.Letters)), "letter"))
		return exit(ExitInterrupted)
	}
	return exitIf(report.WouldSucceed < len(letters), ExitPartly)
}

// runCopies runs the command on copies of letters, and tells of each.
func (f *dlqTry) runCopies(
	ctx context.Context, o *office.Office, st store.Store, cfg *runner.Config, letters []nixie.Letter, told func(*runner.Trial),
) error {
	cfg.Queues = nil
	var ids []nixie.ID
	for i := range letters {
		ids = append(ids, letters[i].ID)
		if queue := letters[i].Message.Queue; !slices.Contains(cfg.Queues, queue) {
			cfg.Queues = append(cfg.Queues, queue)
		}
	}
	r, err := runner.New(*cfg)
	if err != nil {
		return err
	}
	r.Use(st)
	return f.drive(ctx, r, false, func(ctx context.Context) error {
		trials, err := r.Try(ctx, ids, o.LetterByID)
		for i := range trials {
			told(&trials[i])
		}
		return err
	})
}

// The outcomes of a copy.
const (
	trySucceeds = "would_succeed"
	trySame     = "same_failure" // of the group of its letter
	tryNew      = "new_failure"
	trySkipped  = "skipped"
)

// tryCounts counts copies by outcome.
type tryCounts struct {
	WouldSucceed int `json:"would_succeed"`
	SameFailure  int `json:"same_failure"`
	NewFailure   int `json:"new_failure"`
	Skipped      int `json:"skipped"` // not tried
}

func (c *tryCounts) add(outcome string) {
	*map[string]*int{trySucceeds: &c.WouldSucceed, trySame: &c.SameFailure, tryNew: &c.NewFailure, trySkipped: &c.Skipped}[outcome]++
}

// tryReport is the JSON of dlq try.
type tryReport struct {
	tryCounts
	Groups  []tryGroup  `json:"groups"`
	Letters []tryLetter `json:"letters"`
}

// tryGroup counts the copies of letters of one group.
type tryGroup struct {
	Signature   string `json:"signature"`
	Fingerprint string `json:"fingerprint"`
	tryCounts
}

// tryLetter has the outcome of one copy.
type tryLetter struct {
	ID          nixie.ID `json:"id"`
	Queue       string   `json:"queue"`
	Key         string   `json:"key"`
	Outcome     string   `json:"outcome"`
	Fingerprint string   `json:"fingerprint"` // of the failure of the copy, "" if there is none
	Text        string   `json:"text"`        // of that failure, or why the letter was skipped
}

// judge adds what the command did with a copy.
func (r *tryReport) judge(t *runner.Trial) {
	switch f := t.Failure; {
	case t.Verb == nixie.Complete:
		r.add(&t.Letter, trySucceeds, "", "")
	case f == nil:
		r.add(&t.Letter, tryNew, "", "the command asked for "+string(t.Verb))
	default:
		outcome := tryNew
		if t.Same {
			outcome = trySame
		}
		r.add(&t.Letter, outcome, t.Fingerprint, f.Text)
	}
}

func (r *tryReport) add(l *nixie.Letter, outcome, fingerprint, text string) {
	r.tryCounts.add(outcome)
	r.Letters = append(r.Letters, tryLetter{l.ID, l.Message.Queue, l.Message.Key, outcome, fingerprint, text})
	at := slices.IndexFunc(r.Groups, func(g tryGroup) bool { return g.Fingerprint == l.Fingerprint })
	if at < 0 {
		at = len(r.Groups)
		r.Groups = append(r.Groups, tryGroup{Signature: l.Signature, Fingerprint: l.Fingerprint})
	}
	r.Groups[at].add(outcome)
}

// print prints a table of the letters, one of their groups, and the sums.
func (f *dlqTry) print(w io.Writer, r *tryReport) {
	if len(r.Letters) == 0 {
		fmt.Fprintln(w, "0 letters tried: nothing matches")
		return
	}
	column := func(name string) heading { return heading{text: name} }
	number := func(name string) heading { return heading{text: name, right: true} }
	all := newTable(w, f.tableWidth(), f.colours(f.OutTTY), heading{text: "LETTER", id: f.output == asTable},
		heading{text: "KEY", flex: true}, column("OUTCOME"),
		heading{text: "WHY", flex: true})
	for _, l := range r.Letters {
		_ = all.add(cell{text: l.ID.String()}, cell{text: l.Key}, // to memory, like all of this
			cell{strings.ReplaceAll(l.Outcome, "_", " "), inkIf(l.Outcome != trySucceeds, red)}, cell{text: l.Text})
	}
	_ = all.flush()
	fmt.Fprintln(w)
	groups := newTable(w, f.width(), f.colours(f.OutTTY), number("WOULD SUCCEED"), number("SAME FAILURE"), number("NEW FAILURE"),
		number("SKIPPED"), heading{text: "THEY DIED OF", flex: true})
	for _, g := range r.Groups {
		var row []cell
		for _, n := range [...]int{g.WouldSucceed, g.SameFailure, g.NewFailure, g.Skipped} {
			row = append(row, cell{text: strconv.Itoa(n)})
		}
		_ = groups.add(append(row, cell{text: g.Signature})...)
	}
	_ = groups.flush()
	fmt.Fprintf(w, "\n%d of %s would succeed%s\n", r.WouldSucceed, plural(int64(len(r.Letters)), "letter"), counts(
		count{int64(r.SameFailure), "with the same failure"}, count{int64(r.NewFailure), "with a new failure"},
		count{int64(r.Skipped), "skipped"}))
}
