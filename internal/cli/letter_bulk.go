package cli

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// letterBulk does one thing to many letters: redrive, discard, hold, purge …
type letterBulk struct {
	bulk
	event  store.Event
	done   string                          // what letters are then: redriven, discarded …
	choice letterFlags                     // by --filter and --where
	narrow func(*nixie.Filter, bool) error // narrows the filter by further flags; the bool is true when IDs are given

	flags            *pflag.FlagSet
	headers          []string // of --header
	wanted           []wantedHeader
	max, maxRedrives int
	rate             string
	perSecond        float64 // of rate
	resume, token    string  // IDs of an operation to go on with, and of one that a dry run kept
	all, force       bool
	again, reviewed  bool
	wait             durationFlag
	expiresIn        time.Duration
	withheld         []redrive.Refusal // match and cannot go, and so were not selected
	ofJob            bool              // many letters of a job of nixie run: a try is advised before

	target *redriveTarget // of a redrive
}

func (l *letterBulk) register(fs *pflag.FlagSet) {
	l.flags = fs
	l.choice.register(fs)
	if l.choice.of == nil { // nixie map dlq chooses all by default, and nixie dlq resumes its operations
		fs.BoolVar(&l.all, "all", false, "all letters: needed without IDs and filter")
		fs.StringVar(&l.resume, "resume", "", "go on with an operation that was stopped")
	}
	fs.IntVar(&l.max, "max", 0, "at most this many letters, the oldest deaths first; 0 is no limit")
	fs.StringVar(&l.rate, "rate", "", "at most this many a second, such as 50, or 10/m, or 600/h")
	why := "reason"
	if l.event == store.OnNote {
		why = "text"
	}
	l.bulk.register(fs, why, "with every letter")
}

func (l *letterBulk) read(g *globals) (err error) {
	if l.perSecond, err = parseRate(l.rate); err != nil {
		return err
	}
	if l.wanted, err = parseHeaders(l.headers); err != nil {
		return err
	}
	return l.choice.read(g)
}

// run goes on with an operation, or chooses letters and begins one.
func (l *letterBulk) run(ctx context.Context, args []string) error {
	f := &l.choice.filter
	if l.narrow != nil && l.resume == "" {
		if err := l.narrow(f, len(args) > 0); err != nil {
			return err
		}
	}
	if l.choice.of != nil && len(args) == 0 && !l.goesOn() {
		l.all = !l.chooses()
	}
	if err := l.check(args); err != nil {
		return err
	}
	if folder, is := l.itemFolder(); is && l.choice.of != nil && l.event != store.OnRedrive {
		return l.removeFiles(ctx, folder, args)
	}
	work := &office.OperationRequest{
		Event: l.event, Filter: *f, Text: l.choice.text, Max: l.max, Reason: l.reason, Force: l.force,
		Rate: l.perSecond, MaxRedrives: l.maxRedrives, ExpiresIn: l.expiresIn, Reviewed: l.reviewed, Await: time.Duration(l.wait),
		Progress: func(v office.OperationResult) {
			l.status("%d of %d, %d skipped", v.Done(), v.Selected, v.Skipped+v.Failed)
		},
	}
	if l.target != nil {
		end, err := l.target.attach(ctx, l.globals, work)
		if err != nil {
			return err
		}
		defer end()
	}
	return l.visit(func(o *office.Office) error {
		mirrors := l.mirrors(ctx, o)
		defer mirrors.follow(ctx)
		if l.goesOn() {
			return l.goOn(ctx, o, work)
		}
		return l.begin(ctx, o, work, args)
	})
}

// goesOn reports whether an earlier command chose the letters.
func (l *letterBulk) goesOn() bool { return l.resume+l.token != "" }

// chooses reports whether flags choose some letters and not all.
func (l *letterBulk) chooses() bool {
	return !l.choice.filter.IsZero() || len(l.headers) > 0 || l.choice.where != ""
}

// check finds mistakes in the flags before the store is opened.
func (l *letterBulk) check(args []string) error {
	chosen := 0
	narrowed := l.all && l.narrow != nil && l.choice.text == "" // --all with --older-than is one choice
	for _, given := range [...]bool{len(args) > 0, l.chooses() && !narrowed, l.all, l.resume != "", l.token != ""} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen == 0:
		return usagef("nothing is chosen: give IDs or --filter, or --all for every letter")
	case chosen > 1 && (len(l.headers) > 0 || l.choice.where != ""):
		return usagef("--header and --where choose alone or with --filter: leave IDs, --all and --resume out")
	case chosen > 1:
		return usagef("choose by one of IDs, --filter, --all, --resume and --token")
	case l.again && l.resume == "":
		return usagef("--again takes up what died again in an operation: name that by --resume")
	case l.wait > 0 && l.target.sends():
		return usagef("--wait is for letters that go back to their queues: a broker does not say what becomes of a record")
	case l.expiresIn != 0 && l.target.sends():
		return usagef("--expires-in is for letters that go to queues of the store: a broker keeps no expiry")
	case l.expiresIn > nixie.MaxDelay:
		return usagef("--expires-in is %s: give a duration up to %s", l.expiresIn, nixie.MaxDelay)
	case l.goesOn() && (l.dry || l.max != 0 || l.reason != ""):
		return usagef("--resume and --token go on with what was chosen: leave --dry-run, --max and --%s out", l.why)
	case l.max < 0:
		return usagef("--max is %d: give a positive number, or 0 for no limit", l.max)
	case !l.goesOn() && l.needReason() != nil:
		return l.needReason()
	}
	return l.canAsk()
}

// begin freezes the chosen letters as an operation, and runs it.
func (l *letterBulk) begin(ctx context.Context, o *office.Office, work *office.OperationRequest, args []string) (err error) {
	if work.Filter, err = l.choice.confine(ctx, o, work.Filter); err != nil {
		return err
	}
	work.Text, work.Family = l.choice.text, l.choice.named
	l.all = l.all && l.choice.of == nil // now the filter names the job
	if len(args) > 0 {
		if args, err = l.choice.of.ids(ctx, o, args); err != nil {
			return err
		}
		if work.IDs, err = o.LetterIDs(ctx, args); err != nil {
			return err
		}
		work.Text = filter.Text(nixie.Filter{IDs: work.IDs})
	}
	if len(l.wanted) > 0 || l.choice.expr != nil {
		if err := l.pick(ctx, o, work); err != nil {
			return err
		}
	}
	if l.target != nil {
		if err := l.target.destined(ctx, o, work); err != nil {
			return err
		}
	}
	return l.do(func() (plan, error) {
		preview := o.Preview
		if l.dry && l.reason != "" && l.event == store.OnRedrive {
			preview = o.Keep
		}
		p, err := preview(ctx, work)
		if err == nil && l.event == store.OnRedrive && p.Movable > manyLetters && len(args)+len(l.headers) == 0 {
			l.ofJob, err = o.OfJob(ctx, p.ByQueue)
		}
		return l.plan(&p), err
	}, func() error {
		op, err := o.Begin(ctx, work)
		if err == nil {
			l.withheld, err = o.Withheld(ctx, work, op.Selected)
		}
		if err != nil {
			return err
		}
		return l.drive(ctx, o, op.Operation, work, args)
	})
}

// plan converts a plan of the office.
func (l *letterBulk) plan(p *office.Plan) plan {
	return plan{
		n: p.Selected, ask: func(w io.Writer) { l.printSelection(w, p) },
		view: dryRun{true, *p}, show: func(w io.Writer) { l.printPlan(w, p) },
	}
}

// pick chooses letters by their headers and by --where, the oldest deaths first where there is a
// maximum.
func (l *letterBulk) pick(ctx context.Context, o *office.Office, work *office.OperationRequest) error {
	for _, h := range l.wanted {
		if broker.Ours(h.name) {
			return usagef("--header %s: a letter of the office has the headers of its sender; what it died of is chosen by --filter",
				h.name)
		}
	}
	work.Picked = func(letter *nixie.Letter) bool {
		return (l.choice.expr == nil || l.choice.expr.Matches(letter)) && hasAll(broker.FromLetter(letter).Headers, l.wanted)
	}
	ids, err := l.choice.pick(ctx, o, work.EffectiveFilter(), work.Picked)
	if err != nil {
		return err
	}
	if work.Max > 0 && len(ids) > work.Max {
		ids = ids[len(ids)-work.Max:]
	}
	if len(ids) > maxPicked {
		return usagef("%d letters are chosen one by one, the most at once are %d: give --max %[2]d, and run the same command again",
			len(ids), maxPicked)
	}
	work.IDs = ids
	work.Text = strings.TrimSpace(work.Text + " " + strings.Join(typedFlags(l.flags, "where", "header"), " "))
	return nil
}

// goOn resumes an operation of the same verb, or begins the one that a dry run kept.
func (l *letterBulk) goOn(ctx context.Context, o *office.Office, work *office.OperationRequest) error {
	op, err := o.FindOperation(ctx, l.resume+l.token)
	id := op.ID
	switch {
	case err != nil:
		return err
	case op.Event != l.event:
		return nixie.Errorf(nixie.CodeInvalid, "operation %s is a %s: resume it with nixie dlq %s", id, op.Event, op.Event)
	case l.token != "" && !op.Guarded:
		return nixie.Errorf(nixie.CodeInvalid, "operation %s is not of a dry run: go on with it by --resume", id)
	}
	if l.target != nil {
		if err := l.target.same(&op); err != nil {
			return err
		}
	}
	if l.again {
		if op, err = o.Repeat(ctx, id); err != nil {
			return err
		}
	}
	l.choice.text, l.reason = op.Filter, op.Reason
	return l.do(func() (plan, error) {
		p := l.plan(&office.Plan{Selected: op.Pending, Movable: op.Pending})
		p.n = 1 // ask also about 0 letters
		return p, nil
	}, func() error { return l.drive(ctx, o, id, work, nil) })
}

// drive runs an operation and reports.
func (l *letterBulk) drive(ctx context.Context, o *office.Office, id nixie.ID, work *office.OperationRequest, args []string) error {
	v, err := o.Run(ctx, id, work)
	v.Refused = append(v.Refused, l.withheld[:min(len(l.withheld), max(0, redrive.MaxRefusals-len(v.Refused)))]...)
	if v.Selected > 0 {
		l.status("")
	}
	if !v.Operation.IsZero() {
		if printing := l.object(v, func(w io.Writer) { l.printOperation(w, &v) }); printing != nil {
			return printing
		}
	}
	l.sayUnanswered(value(v.Unanswered))
	stopped := value(v.Stopped)
	if v.Pending > 0 {
		if stopped {
			l.say("%v; see what they died of with\n  %s", err, l.typed("dlq", "analyze", "--filter", quote("operation:"+id.String())))
		}
		l.say("%d of %d letters to go; go on with\n  %s", v.Pending, v.Selected, l.typedAgain("--resume", id.String()))
	}
	l.sayForce(ctx, o, &v, args)
	switch {
	case err != nil && ctx.Err() != nil:
		return exit(ExitInterrupted)
	case err != nil && !stopped:
		return err
	}
	return exitIf(stopped || v.Skipped+v.Failed > 0 || len(l.withheld) > 0 || l.wait > 0 && v.Outstanding() > 0, ExitPartly)
}

// value returns what p points at, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// sayUnanswered tells of records that a broker has not confirmed.
func (g *globals) sayUnanswered(n int64) {
	if n > 0 {
		g.say("%d of those sent have no answer, and may be there: they are sent again under the same x-redrive-id", n)
	}
}

// typedAgain writes the command with other words, and with the flags that tell how letters are
// moved.
func (l *letterBulk) typedAgain(words ...string) string {
	words = append([]string{"dlq", string(l.event)}, words...)
	if l.target != nil {
		words = append(words, l.target.words()...)
	}
	words = append(words, typedFlags(l.flags, "expires-in", "max-redrives", "rate")...)
	return l.typed(append(words, "--yes")...)
}

// sayForce prints the command for letters that stayed because they need --force.
func (l *letterBulk) sayForce(ctx context.Context, o *office.Office, v *office.OperationResult, args []string) {
	if l.event != store.OnRedrive || l.force || len(v.Refused) == 0 {
		return
	}
	n, err := o.CountNeedingForce(ctx, v.Refused)
	if err != nil || n == 0 {
		return // the run itself has succeeded
	}
	words := quoted(args)
	switch {
	case l.all:
		words = append(words, "--all")
	case l.choice.text != "":
		words = append(words, "--filter", quote(l.choice.text))
	}
	words = append(words, typedFlags(l.flags, "where", "header", "max")...)
	words = append(words, "--force", "--reason", quote(l.reason))
	l.say("some need --force, once a person has reviewed them:\n  %s", l.typedAgain(words...))
}

// parseRate reads 50, 50/s, 10/m or 600/h as letters per second; "" is no limit.
func parseRate(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	per, known := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(n > 0) || n > 1e9 || strings.HasSuffix(text, "/") {
		return 0, usagef("--rate is %q: give a number a second such as 50, or 10/m, or 600/h", text)
	}
	return n / per, nil
}
