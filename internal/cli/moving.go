package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
)

// moving is a verb that is done to many letters: redrive, discard, hold …
type moving struct {
	*globals
	event      nixie.Event
	verb, done string
	free       bool                                           // needs no reason
	narrow     func(nixie.Filter, bool) (nixie.Filter, error) // the choice, with IDs or without, by flags of its own; nil leaves it

	filter               letterFlags
	headers              []string // by which letters are chosen as well
	max, maxRedrives     int
	rate, reason         string
	resume               string
	token                string // of a dry run
	all, yes, dry, force bool
	again, reviewed      bool
	wait                 spanFlag

	sending *sending // of a redrive
}

func (m *moving) register(fs *pflag.FlagSet) {
	m.filter.register(fs)
	if m.filter.of == nil { // of a job all are meant without it, and its operations are resumed as others are
		fs.BoolVar(&m.all, "all", false, "all letters: needed without IDs and filter")
		fs.StringVar(&m.resume, "resume", "", "go on with an operation that was stopped")
	}
	fs.IntVar(&m.max, "max", 0, "at most so many, the oldest deaths first; 0 is no limit")
	fs.StringVar(&m.rate, "rate", "", "at most so many a second, or 10/m, or 600/h")
	required := " (required)"
	if m.free {
		required = ""
	}
	fs.StringVar(&m.reason, m.why(), "", "why; recorded with every letter"+required)
	fs.BoolVar(&m.dry, "dry-run", false, "show what would be done and do nothing")
	fs.BoolVarP(&m.yes, "yes", "y", false, "do not ask; needed when not on a terminal")
}

// why is the name of the flag that says why; of a note it is the note.
func (m *moving) why() string {
	if m.event == nixie.OnNote {
		return "text"
	}
	return "reason"
}

// run checks everything that can be checked before the store is opened.
func (m *moving) run(cmd *cobra.Command, args []string) error {
	rate, err := parseRate(m.rate)
	if err != nil {
		return err
	}
	if err := m.filter.read(m.globals); err != nil {
		return err
	}
	f := m.filter.filter
	if m.narrow != nil && m.resume == "" {
		if f, err = m.narrow(f, len(args) > 0); err != nil {
			return err
		}
	}
	if m.filter.of != nil && len(args) == 0 && m.resume == "" && m.token == "" {
		m.all = !m.chooses(f) // of a job
	}
	if err := m.check(args, f); err != nil {
		return err
	}
	if folder, is := m.itemFolder(); is && m.filter.of != nil && m.event != nixie.OnRedrive {
		return m.removeFiles(cmd.Context(), folder, f, args)
	}
	headers, err := parseHeaders(m.headers)
	if err != nil {
		return err
	}
	work := &office.OperationRequest{
		Event: m.event, Filter: f, Text: m.filter.text, Max: m.max, Reason: m.reason, Force: m.force,
		Rate: rate, MaxRedrives: m.maxRedrives, Reviewed: m.reviewed, Await: time.Duration(m.wait), Progress: m.progress(),
	}
	if m.sending != nil {
		if work.Stop, err = m.sending.stop(); err != nil {
			return err
		}
	}
	if m.sending != nil && m.sending.sends() {
		route, end, err := m.sending.route(cmd.Context(), m.globals)
		if err != nil {
			return err
		}
		defer end()
		route.MaxRedrives, work.SetsAside = m.maxRedrives, route.Quarantine != ""
		if work.Send, err = route.Letters(); err != nil {
			return err
		}
	}
	if m.sending != nil && !m.sending.sends() && m.sending.edits() {
		end, err := m.edit(work)
		if err != nil {
			return err
		}
		defer end()
	}
	return m.visit(func(o *office.Office) error {
		if m.resume != "" || m.token != "" {
			return m.goOn(cmd.Context(), o, work)
		}
		return m.begin(cmd.Context(), o, work, args, headers)
	})
}

// edit has the messages changed that go back to their queues; end ends what runs for it.
func (m *moving) edit(work *office.OperationRequest) (end func(), err error) {
	changes, end, err := m.sending.changes(m.globals)
	if err != nil {
		return nil, err
	}
	if m.sending.pipe != "" {
		work.Batch = pipeBatch
	}
	if work.Edit, err = changes.Edits(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

func (m *moving) check(args []string, f nixie.Filter) error {
	chosen := 0
	narrowed := m.all && m.narrow != nil && m.filter.text == "" // all of an age is all
	for _, given := range [...]bool{len(args) > 0, m.chooses(f) && !narrowed, m.all, m.resume != "", m.token != ""} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen == 0:
		return usagef("nothing is chosen: give IDs or --filter, or --all for every letter")
	case chosen > 1 && (len(m.headers) > 0 || m.filter.where != ""):
		return usagef("--header and --where choose alone or with --filter: leave IDs, --all and --resume out")
	case chosen > 1:
		return usagef("choose by one of IDs, --filter, --all, --resume and --token")
	case m.again && m.resume == "":
		return usagef("--again takes up what died again in an operation: name that by --resume")
	case m.wait > 0 && m.sending.sends():
		return usagef("--wait is for letters that go back to their queues: a broker does not say what becomes of a record")
	case (m.resume != "" || m.token != "") && (m.dry || m.max != 0 || m.reason != ""):
		return usagef("--resume and --token go on with what was chosen: leave --dry-run, --max and --%s out", m.why())
	case m.max < 0:
		return usagef("--max is %d: give a positive number, or 0 for no limit", m.max)
	case m.reason == "" && m.resume == "" && m.token == "" && !m.dry && !m.free:
		return usagef("--%s is empty: say why, it is recorded with every letter", m.why())
	case !m.yes && !m.dry && !(m.InTTY && m.ErrTTY):
		return usagef("no terminal to ask on: give --yes, or --dry-run to see what would be done")
	}
	return nil
}

// chooses reports whether flags choose letters that are not all.
func (m *moving) chooses(f nixie.Filter) bool {
	return !f.IsZero() || len(m.headers) > 0 || m.filter.where != ""
}

// begin previews, asks, freezes the selection and drives it.
func (m *moving) begin(ctx context.Context, o *office.Office, work *office.OperationRequest, args []string, headers []wantedHeader) error {
	var err error
	if work.Filter, err = m.filter.confine(ctx, o, work.Filter); err != nil {
		return err
	}
	work.Text = m.filter.text
	m.all = m.all && m.filter.of == nil // now the filter says it
	if len(args) > 0 {
		if args, err = m.filter.of.ids(ctx, o, args); err != nil {
			return err
		}
		ids, err := o.LetterIDs(ctx, args)
		if err != nil {
			return err
		}
		work.IDs, work.Text = ids, filter.Text(nixie.Filter{IDs: ids})
	}
	if len(headers) > 0 || m.filter.expr != nil {
		if err := m.choose(ctx, o, work, headers); err != nil {
			return err
		}
	}
	if m.sending != nil {
		if err := m.sending.destined(ctx, o, work); err != nil {
			return err
		}
	}
	if m.dry || !m.yes {
		preview := o.Preview
		if m.dry && m.reason != "" && m.event == nixie.OnRedrive {
			preview = o.Keep
		}
		plan, err := preview(ctx, work)
		if err != nil {
			return err
		}
		if m.dry {
			return m.object(dryRun{true, plan}, func(w io.Writer) { m.printPlan(w, &plan) })
		}
		if plan.Selected > 0 {
			if err := m.ask(&plan); err != nil {
				return err
			}
		}
	}
	op, err := o.Begin(ctx, work)
	if err != nil {
		return err
	}
	return m.drive(ctx, o, op.Operation, work, args)
}

// goOn resumes an operation of the same kind, or begins the one that a dry run kept.
func (m *moving) goOn(ctx context.Context, o *office.Office, work *office.OperationRequest) error {
	id, err := nixie.ParseID(m.resume + m.token)
	if err != nil {
		return err
	}
	op, err := o.Operation(ctx, id)
	if err != nil {
		return err
	}
	if op.Event != m.event {
		return nixie.Errorf(nixie.CodeInvalid, "operation %s is a %s: resume it with nixie dlq %s", id, op.Event, op.Event)
	}
	if m.token != "" && !op.Guarded {
		return nixie.Errorf(nixie.CodeInvalid, "operation %s is not of a dry run: go on with it by --resume", id)
	}
	if m.sending != nil {
		if err := m.sending.same(&op); err != nil {
			return err
		}
	}
	if m.again {
		if op, err = o.Repeat(ctx, id); err != nil {
			return err
		}
	}
	m.filter.text, m.reason = op.Filter, op.Reason
	if !m.yes {
		plan := office.Plan{Selected: op.Pending, Movable: op.Pending}
		if err := m.ask(&plan); err != nil {
			return err
		}
	}
	return m.drive(ctx, o, id, work, nil)
}

// drive works an operation off and reports.
func (m *moving) drive(ctx context.Context, o *office.Office, id nixie.ID, work *office.OperationRequest, args []string) error {
	v, err := o.Run(ctx, id, work)
	if m.ErrTTY && v.Selected > 0 {
		fmt.Fprint(m.Err, "\r\x1b[K") // the line of progress
	}
	if !v.Operation.IsZero() {
		if printing := m.object(v, func(w io.Writer) { m.printOperation(w, &v) }); printing != nil {
			return printing
		}
	}
	if v.Unanswered != nil && *v.Unanswered > 0 {
		m.say("%d of those sent have no answer, and may be there: they are sent again under the same x-redrive-id", *v.Unanswered)
	}
	if v.Pending > 0 {
		words := append([]string{"dlq", m.verb, "--resume", id.String()}, m.words()...)
		if v.Stopped != nil && *v.Stopped {
			m.say("%v; see what they died of with\n  %s", err, m.typed("dlq", "analyze", "--filter", quote("operation:"+id.String())))
		}
		m.say("%d of %d letters to go; go on with\n  %s", v.Pending, v.Selected, m.typed(append(words, "--yes")...))
	}
	m.sayForce(ctx, o, &v, args)
	switch {
	case err != nil && ctx.Err() != nil:
		return exit(ExitInterrupted)
	case v.Stopped != nil && *v.Stopped:
		return exit(ExitPartly)
	case err != nil:
		return err
	case v.Skipped+v.Failed > 0, m.wait > 0 && v.Outstanding() > 0:
		return exit(ExitPartly)
	}
	return nil
}

// words are flags of how letters are moved, to be typed again.
func (m *moving) words() (words []string) {
	if m.sending != nil {
		words = append(words, m.sending.words()...)
	}
	if m.maxRedrives != 0 {
		words = append(words, "--max-redrives", strconv.Itoa(m.maxRedrives))
	}
	if m.rate != "" {
		words = append(words, "--rate", quote(m.rate))
	}
	return words
}

// sayForce prints the command that moves letters which were left for want of --force.
func (m *moving) sayForce(ctx context.Context, o *office.Office, v *office.OperationResult, args []string) {
	if m.event != nixie.OnRedrive || m.force || len(v.Refused) == 0 {
		return
	}
	n, err := o.CountNeedingForce(ctx, v.Refused)
	if err != nil || n == 0 {
		return // the run is what was asked for
	}
	words := []string{"dlq", m.verb}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	switch {
	case m.all:
		words = append(words, "--all")
	case m.filter.text != "":
		words = append(words, "--filter", quote(m.filter.text))
	}
	if m.filter.where != "" {
		words = append(words, "--where", quote(m.filter.where))
	}
	for _, h := range m.headers {
		words = append(words, "--header", quote(h))
	}
	words = append(words, "--force", "--reason", quote(m.reason))
	m.say("some need --force, once a person has looked at them:\n  %s", m.typed(append(append(words, m.words()...), "--yes")...))
}

// dryRun is the JSON of --dry-run.
type dryRun struct {
	DryRun bool `json:"dry_run"`
	office.Plan
}

func (m *moving) printOperation(w io.Writer, v *office.OperationResult) {
	if v.Selected == 0 {
		fmt.Fprintf(w, "0 letters %s: nothing matches\n", m.done)
		return
	}
	fmt.Fprintf(w, "%d of %s %s", v.Done(), plural(v.Selected, "letter"), m.done)
	if v.Quarantined != nil && *v.Quarantined > 0 {
		fmt.Fprintf(w, ", %d of them into quarantine", *v.Quarantined)
	}
	for _, part := range [...]struct {
		n    int64
		what string
	}{{v.Skipped, "skipped"}, {v.Failed, "failed"}, {v.Pending, "to go"}} {
		if part.n > 0 {
			fmt.Fprintf(w, ", %d %s", part.n, part.what)
		}
	}
	fmt.Fprintf(w, " (operation %s)\n", v.Operation)
	printOutcome(w, v)
	for i, r := range v.Refused {
		if i == shownRefused {
			break
		}
		fmt.Fprintf(w, "  %s\n", escapeLine(r.Why))
	}
	if more := v.Skipped + v.Failed - shownRefused; more > 0 && len(v.Refused) > shownRefused {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	if hint := m.hint(); hint != "" && v.Done() > 0 {
		fmt.Fprintln(w, hint)
	}
}

// printOutcome says what became of those that were redriven, once anything did.
func printOutcome(w io.Writer, v *office.OperationResult) {
	known := int64(0)
	for _, n := range [...]*int64{v.Succeeded, v.DiedAgain} {
		if n != nil {
			known += *n
		}
	}
	if known == 0 {
		return
	}
	var parts []string
	for _, part := range [...]struct {
		n    *int64
		what string
	}{{v.Succeeded, "succeeded"}, {v.DiedAgain, "died again"}, {v.UnderWay, "on their way"}} {
		if part.n != nil && *part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", *part.n, part.what))
		}
	}
	if v.NewFailure != nil && *v.NewFailure > 0 {
		parts = append(parts, fmt.Sprintf("%d of the dead of another failure than before", *v.NewFailure))
	}
	fmt.Fprintf(w, "  by now %s\n", strings.Join(parts, ", "))
}

// hint says what comes after it.
func (m *moving) hint() string {
	switch m.event {
	case nixie.OnRedrive:
		if m.filter.of != nil {
			return "" // a run comes next
		}
		if m.sending.sends() {
			return "what was redriven is with the broker; what dies there again is the same letter"
		}
		return "what was redriven waits in its queue: nixie work, a worker, or the next nixie run of the job handles it"
	case nixie.OnRequalify:
		return "how often letters were redriven stays: redrive these with a higher --max-redrives"
	}
	return ""
}

// How much of a plan or an outcome is shown to people.
const (
	shownRefused = 5
	shownPlanned = 10
)

func (m *moving) printPlan(w io.Writer, p *office.Plan) {
	if p.Selected == 0 {
		fmt.Fprintf(w, "0 letters would be %s: nothing matches\n", m.done)
		return
	}
	m.printSelection(w, p)
	fmt.Fprintln(w, "\nIn this order")
	for i, id := range p.Letters {
		if i == shownPlanned {
			fmt.Fprintf(w, "  and %d more\n", p.Selected-shownPlanned)
			break
		}
		fmt.Fprintf(w, "  %s\n", id)
	}
	if p.Token != nil {
		words := append([]string{"dlq", m.verb, "--token", p.Token.String()}, m.words()...)
		fmt.Fprintf(w, "\nTo move exactly these, as long as they have not changed:\n  %s\n", m.typed(append(words, "--yes")...))
	}
}

// printSelection prints what a person has to know before saying yes.
func (m *moving) printSelection(w io.Writer, p *office.Plan) {
	fmt.Fprintf(w, "%s would be %s", plural(p.Movable, "letter"), m.done)
	if p.Quarantined > 0 {
		fmt.Fprintf(w, ", %d of them into quarantine", p.Quarantined)
	}
	if p.Edited > 0 {
		fmt.Fprintf(w, ", %d of them edited", p.Edited)
	}
	if p.Expired > 0 {
		fmt.Fprintf(w, ", %d of them only to die again, as they have expired", p.Expired)
	}
	if p.Skipped > 0 {
		fmt.Fprintf(w, ", %d skipped", p.Skipped)
	}
	if rate, err := parseRate(m.rate); err == nil && rate > 0 && p.Movable > 1 {
		fmt.Fprintf(w, ", in about %s", took(time.Duration(float64(p.Movable-1)/rate*float64(time.Second))))
	}
	fmt.Fprintln(w)
	causes := make([]office.Count, 0, len(p.Groups))
	for _, g := range p.Groups {
		causes = append(causes, office.Count{Value: g.Signature, Count: g.Count})
	}
	printCounts(w, "Causes", causes[:min(len(causes), shownPlanned)])
	where := "In queue"
	switch {
	case m.sending != nil && m.sending.sends():
		where = "To " + m.sending.destination() + ", of queue"
	case m.event == nixie.OnRedrive:
		where = "Back to"
	}
	printCounts(w, where, p.ByQueue)
	printCounts(w, "In the order of stream", p.Streams[:min(len(p.Streams), shownPlanned)])
	printCounts(w, "Skipped because", p.Refused)
}

// ask shows the selection on the terminal and wants a yes.
func (m *moving) ask(p *office.Plan) error {
	m.printSelection(m.Err, p)
	return m.confirm()
}

// progress shows how far an operation is, on a terminal only.
func (m *moving) progress() func(office.OperationResult) {
	if !m.ErrTTY {
		return nil
	}
	return func(v office.OperationResult) {
		fmt.Fprintf(m.Err, "\r\x1b[K%d of %d, %d skipped", v.Done(), v.Selected, v.Skipped+v.Failed)
	}
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
