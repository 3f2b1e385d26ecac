package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// acceptance lists the rows that a release has to show. Each is a test or subtest with its number
// in the name, as in R11_NoTwoHolders.
const acceptance = `
R1 The delays of every profile are exactly those of its source, and a huge attempt number stays at the cap.
R2 A wait with jitter lies in its band, and many of them fill it.
R3 The profile wink waits 1, 2, 3 and 4 minutes and buries at the fifth delivery.
R4 An excluded error wins over an included one; an included one is buried at the first delivery.
R5 A policy that the user wrote as a function decides, and limits still win.
R6 The profile kafka-dlc distinguishes transient, permanent and unknown errors.
R7 The profile whizbang retries after 1 and 2 minutes and succeeds at the third attempt.
R8 The profile pgqueuer runs a message within its claim, and otherwise obeys the explicit delay of a retry.
R9 A discard leaves its row, and a halt leaves the rest queued.
R10 A breaker goes through all its states, and an open one costs no attempt.
R11 Two workers never hold a message at once.
R12 A call under a lease that is over changes nothing and gets lease-lost.
R13 A message that kills its worker again and again is dead after bounded crashes; others are not harmed.
R14 A release gives the attempt back, and a loop of releases ends by the bound on deliveries.
R15 A lease is renewed only while its handler beats, up to a bound.
R16 A stopping worker gives back what it has not started.
R17 A lost wake-up costs one poll interval, not the message.
R18 A death is whole or not there after a crash at any write.
R19 Repeating a move does nothing and gives the same ID.
R20 A dead letter item of a MapReduce file is read and written without loss.
R21 The history has number, step, duration and context of each failure, and a bound.
R22 The same cause has the same signature with other IDs and in every build; another step has another.
R23 A body that cannot be decoded becomes a letter with the same bytes.
R24 Secrets are masked in messages, contexts, stacks and exports; bodies need permission.
R25 The numbers of groups and hours match a recount.
R26 A purge takes the age that was named, shows itself beforehand, and never takes what is held or unresolved.
R27 A damaged record is shown as damaged and not skipped.
R28 A redrive of at most 7 moves exactly 7, at the rate that was asked for.
R29 A redrive that is interrupted anywhere and resumed moves each chosen letter once.
R30 A second death keeps the letter, its history grows, and the cap of redrives ends in quarantine.
R31 A filter with an error touches nothing and exits with 2; one that matches nothing exits with 0.
R32 A dry run prints the plan of the real run.
R33 Two redrives of the same letters move none twice.
R35 Letters of one stream go back in their order.
R36 A taken dedupe key is reported for its letter, and the rest goes on.
R39 In a strict stream the follower waits while the head waits for its retry.
R40 A message that may pass runs; the others behind the head wait.
R41 Followers that were let go run while the head waits, and the audit shows it.
R42 A dead or held head blocks its stream, or frees it, as the queue is set.
R43 A blocked stream holds up no other.
R44 Every stream has one holder at a time.
R45 A process that was taken for dead is refused.
R46 An inbox stores an ID once, also when duplicates come together.
R47 A mailbox never loses a message, only the newest handle works, and counts of deliveries never fall.
R48 A message takes replies until it is finalized; a mailbox for replies that cannot be found is an error.
R49 An extension by 0 makes a message visible at once; an explicit 0 is never a default.
R50 A stuck loop is told by the health port and ended by the watchdog, and another process gets its message.
R51 A group refuses sizes that do not fit, and names the least that does.
R52 A drain ends with 0 when only future messages remain, within 100 ms of its last item.
R59 Every command prints a table and JSON as in its golden files, and its exit code.
R60 A depth at its threshold makes the health degraded, with 200; a check that fails makes it unhealthy.`

// row is one line of the acceptance list.
type row struct{ number, says string }

func requiredRows() []row {
	var all []row
	for line := range strings.Lines(strings.TrimSpace(acceptance)) {
		number, says, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, row{number, says})
	}
	return all
}

// rowName finds the row in the last part of a test's name: the end of a row's own test tells how
// its parts ended.
var rowName = regexp.MustCompile(`(?:^Test|/)(R[0-9]+)_[^/]*$`)

// rows collects the results of tests that stand for a row.
type rows struct {
	tests map[string][]string // "ok package test", by row
	bad   map[string]bool     // rows with a test that did not pass
}

func newRows() *rows { return &rows{tests: map[string][]string{}, bad: map[string]bool{}} }

// note takes one event; only ends of tests that name a row count.
func (r *rows) note(e event) {
	word := map[string]string{"pass": "ok", "fail": "FAILED", "skip": "skipped"}[e.Action]
	match := rowName.FindStringSubmatch(e.Test)
	if word == "" || match == nil {
		return
	}
	number := match[1]
	r.tests[number] = append(r.tests[number], fmt.Sprintf("%s %s %s", word, strings.TrimPrefix(e.Package, modulePrefix), e.Test))
	r.bad[number] = r.bad[number] || e.Action != "pass"
}

// print writes each required row with its tests, and returns an error when a row has no test or
// one did not pass.
func (r *rows) print(out io.Writer) error {
	var wrong []string
	for _, row := range requiredRows() {
		fmt.Fprintf(out, "%s %s\n", row.number, row.says)
		if len(r.tests[row.number]) == 0 {
			fmt.Fprintf(out, "%s MISSING\n", row.number)
		}
		for _, line := range r.tests[row.number] {
			fmt.Fprintf(out, "%s %s\n", row.number, line)
		}
		if len(r.tests[row.number]) == 0 || r.bad[row.number] {
			wrong = append(wrong, row.number)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("rows without a passing test: %s", strings.Join(wrong, ", "))
	}
	return nil
}
