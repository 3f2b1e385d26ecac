package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/office"
)

// report prints the summary and returns how the process ends.
func (f *runFlags) report(s runner.Summary, args []string) error {
	if f.flow != nil {
		return f.flow.report(s)
	}
	if err := f.summary(s, func(w io.Writer) { f.printSummary(w, s, args) }); err != nil {
		return err
	}
	return f.conclude(s.End, s.Dead > 0)
}

// conclude prints why work stopped by itself, and returns how the process ends. Partly means that
// some of what is done is dead.
func (g *globals) conclude(e runner.End, partly bool) error {
	if e.Why != "" {
		fmt.Fprintf(g.Err, "nixie: stopped: %s\n", escape(e.Why))
	}
	switch e.Ended {
	case runner.EndStopped:
		return exit(ExitFailure)
	case runner.EndStopAfter, runner.EndHaltAfter, runner.EndHeld:
		return exit(ExitFailing)
	case runner.EndInterrupted:
		return exit(ExitInterrupted)
	}
	return exitIf(partly, ExitPartly)
}

const shownGroups = 10

// printSummary prints the state of the job and the commands to type next.
func (f *runFlags) printSummary(w io.Writer, s runner.Summary, args []string) {
	f.printCounts(w, s)
	f.printOutcome(w, s, args)
}

// printCounts prints how many items ended in which way.
func (f *runFlags) printCounts(w io.Writer, s runner.Summary) {
	fmt.Fprintf(w, "\n%s: %d succeeded%s (%s in this run)\n", plural(s.Items, "item"), s.Succeeded,
		counts(count{s.Dead, "dead"}, count{s.Discarded, "discarded"}, count{s.Unfinished, "unfinished"}), plural(s.Attempts, "attempt"))
}

// printOutcome prints why items died, and the commands to type next.
func (f *runFlags) printOutcome(w io.Writer, s runner.Summary, args []string) {
	if s.Dead > 0 {
		fmt.Fprintf(w, "\nWhy they died:\n")
		for i, g := range s.Groups {
			if i == shownGroups {
				fmt.Fprintf(w, "  and %d more groups\n", len(s.Groups)-shownGroups)
				break
			}
			fmt.Fprintf(w, "  %6d  %s\n", g.Count, escapeLine(g.Signature))
			if said := inFull(g.Signature, g.Text); said != "" {
				fmt.Fprintf(w, "          says: %s\n", said)
			}
		}
	}
	fmt.Fprintln(w, "\nNext:")
	switch {
	case s.Unfinished+s.Dead == 0:
		fmt.Fprintf(w, "  nothing: all is done\n")
	case f.after != nil:
		f.after(w, s)
	default:
		f.next(w, s, args)
	}
}

// next prints the commands that go on with a job that is not done.
func (f *runFlags) next(w io.Writer, s runner.Summary, args []string) {
	filter := quote(filter.Text(nixie.Filter{Queues: []string{s.Job}}))
	if s.Unfinished > 0 {
		fmt.Fprintf(w, "  %s   # goes on\n", f.rerun(args))
		if s.Dead > 0 {
			fmt.Fprintf(w, "  %s dlq redrive%s --filter %s --reason fixed --yes%s   # the dead, once it is repaired\n", f.self(),
				f.storeFlag(), filter, forceFor(s))
		}
		return
	}
	fmt.Fprintf(w, "  %s dlq analyze%s --filter %s\n", f.self(), f.storeFlag(), filter)
	if s.Dead > manyLetters {
		fmt.Fprintf(w, "  %s dlq try%s --filter %s -- %s   # on copies of 10, before all go\n", f.self(), f.storeFlag(), filter,
			quoteAll(args[1:]))
	}
	fmt.Fprintf(w, "  %s dlq redrive%s --filter %s --reason fixed --yes%s\n", f.self(), f.storeFlag(), filter, forceFor(s))
	fmt.Fprintf(w, "  %s   # handles what was redriven\n", f.rerun(args))
}

// manyLetters is the number of letters of a job above which a try before their redrive is advised.
const manyLetters = 20

// forceFor returns --force when no dead item can be redriven without it.
func forceFor(s runner.Summary) string {
	if slices.ContainsFunc(s.Groups, func(g runner.Group) bool { return !office.NeedsForce(g.Reason) }) {
		return ""
	}
	return " --force"
}

// rerun returns the command that goes on with this job. Standard input is not read again, because
// its items are in the store.
func (f *runFlags) rerun(args []string) string {
	line := f.self() + " " + f.verb + " " + quote(args[0]) + f.storeFlag()
	if len(f.given) > 0 {
		line += " " + quoteAll(f.given)
	}
	if len(args) > 1 {
		line += " -- " + quoteAll(args[1:])
	}
	if args[0] == stdinList {
		line += " </dev/null"
	}
	return line
}

// storeFlag returns the --store that a next command needs.
func (g *globals) storeFlag() string {
	flags := ""
	if g.store != "" {
		flags = " --store " + quote(app.Shown(g.store))
	}
	if g.file != "" {
		flags += " --config " + quote(g.file)
	}
	return flags
}
