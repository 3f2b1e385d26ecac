package cli

import (
	"errors"
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
	if err := f.summary(s, func(w io.Writer) { f.printSummary(w, s, args) }); err != nil {
		return err
	}
	switch {
	case s.Halted != "":
		return f.halted(s.Halted)
	case s.Interrupted:
		return exit(ExitInterrupted)
	case s.Unfinished > 0:
		return errors.New("the job is not finished")
	case s.Dead > 0:
		return exit(ExitPartly)
	}
	return nil
}

const shownGroups = 10

// printSummary prints the state of the job and the commands to type next.
func (f *runFlags) printSummary(w io.Writer, s runner.Summary, args []string) {
	fmt.Fprintf(w, "\n%s: %d succeeded%s (%s in this run)\n", plural(s.Items, "item"), s.Succeeded,
		counts(count{s.Dead, "dead"}, count{s.Discarded, "discarded"}, count{s.Unfinished, "unfinished"}), plural(s.Attempts, "attempt"))
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
	if s.Unfinished > 0 {
		fmt.Fprintf(w, "  %s   # goes on\n", f.rerun(args))
		return
	}
	filter := quote(filter.Text(nixie.Filter{Queues: []string{s.Job}}))
	fmt.Fprintf(w, "  nixie dlq analyze%s --filter %s\n", f.storeFlag(), filter)
	if s.Dead > manyLetters {
		fmt.Fprintf(w, "  nixie dlq try%s --filter %s -- %s   # on copies of 10, before all go\n", f.storeFlag(), filter,
			quoteAll(args[1:]))
	}
	fmt.Fprintf(w, "  nixie dlq redrive%s --filter %s --reason fixed --yes%s\n", f.storeFlag(), filter, forceFor(s))
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
	line := "nixie " + f.verb + " " + quote(args[0]) + f.storeFlag()
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
