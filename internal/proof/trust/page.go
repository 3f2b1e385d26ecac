package trust

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// page is everything that docs/trust.md shows.
type page struct {
	promises   []promise
	guarantees []guarantee
	bugs       []bug
	record     []mishap
	mutants    []mutant
	deep       deepRun
}

const pageHead = `# Trust

<!-- written from internal/proof/trust: make trust -->

What Nixie promises is in [guarantees.md](guarantees.md). This page shows what each
promise rests on, what rests on nothing, how much the last deep run did, which
defects of other systems are tested for, and which defects Nixie itself had.

Tests are named by package and name; ` + "`suite`" + ` is
[store/storetest](../store/storetest), which every store passes, and ` + "`nixie`" + ` the root
package. To run one: ` + "`go test -run NAME ./PACKAGE`" + `. The kinds of proof:

| kind | is |
|---|---|
| test | an ordinary test |
| suite | a clause that every store passes |
| rapid | random operations compared with the reference store |
| fuzz | a parser fed with what nobody would write |
| power loss | the power goes, or the disk fails, at each call to the disk |
| kill | real processes killed with what they hold |
| history | calls of concurrent clients, recorded and checked afterwards |

From rapid on they run a little in each ` + "`make test`" + ` and much in ` + "`make deep`" + `.
`

// write writes the page.
func (p *page) write(w io.Writer) {
	fmt.Fprint(w, pageHead)
	p.writeDeep(w)
	p.writePromises(w)
	p.writeGuarantees(w)
	p.writeUnproved(w)
	p.writeMutants(w)
	p.writeBugs(w)
	p.writeRecord(w)
}

func (p *page) writeDeep(w io.Writer) {
	fmt.Fprint(w, "\n## The last deep run\n\n")
	if len(p.deep.Proofs) == 0 {
		fmt.Fprintf(w, "None: %s.\n", notRun)
		return
	}
	fmt.Fprint(w, "Each row names the commit that was run. A count that takes longer than code stays as it is goes on over several, each\n"+
		"seed on one of them, and its row names the first and the last; once it is full, changed code begins anew.\n\n"+
		"| proof | done | wanted | violations | seconds | on | commit |\n|---|---|---|---|---|---|---|\n")
	list := slices.Clone(p.deep.Proofs)
	slices.SortFunc(list, func(a, b deepProof) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range list {
		fmt.Fprintf(w, "| %s | %s %s | %s | %d | %.0f | %s | %s |\n", cell(d.Name), grouped(d.Count), cell(d.Unit), grouped(d.Want), d.Violations, d.Seconds, cell(d.Date), cell(d.commits()))
	}
}

// commits are those that were run.
func (d *deepProof) commits() string {
	if d.Since == "" {
		return d.Commit
	}
	return d.Since + " to " + d.Commit
}

func (p *page) writePromises(w io.Writer) {
	fmt.Fprint(w, "\n## What is promised, and what shows it\n")
	part := ""
	for _, row := range p.promises {
		if row.part != part {
			part = row.part
			fmt.Fprintf(w, "\n### %s\n\n| promise | shown by | kind | last deep run |\n|---|---|---|---|\n", part)
		}
		list := kindsOf(row.tests, "")
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", cell(row.name), spans(row.tests), strings.Join(list, ", "), p.deep.of(list))
	}
}

func (p *page) writeGuarantees(w io.Writer) {
	fmt.Fprint(w, `
## What a system of this kind should promise

The list that the design began with. What of it is built is a promise of
[guarantees.md](guarantees.md), in italics; the tests are those of the promise and
those that are named here. A random proof is listed where it looks for this in each of its cases.

| | it should promise | as we do | tests beside | kind | last deep run | not built |
|---|---|---|---|---|---|---|
`)
	for _, g := range p.guarantees {
		list, done := kindsOf(p.testsOf(&g), g.proofs), "–"
		if len(list) > 0 {
			done = p.deep.of(list)
		}
		as := strings.Join(promisesOf(&g), "*, *")
		if as != "" {
			as = "*" + as + "*"
		}
		fmt.Fprintf(w, "| G%d | %s | %s | %s | %s | %s | %s |\n", g.number, cell(g.words), cell(as), spans(strings.Fields(g.tests)),
			strings.Join(list, ", "), done, cell(g.later))
	}
}

// promisesOf lists the promises that a guarantee names.
func promisesOf(g *guarantee) []string {
	if g.promises == "" {
		return nil
	}
	return strings.Split(g.promises, "; ")
}

// testsOf lists the tests of a guarantee, those of its promises first.
func (p *page) testsOf(g *guarantee) []string {
	var tests []string
	for _, name := range promisesOf(g) {
		for _, row := range p.promises {
			if row.name == name {
				tests = append(tests, row.tests...)
			}
		}
	}
	return append(tests, strings.Fields(g.tests)...)
}

// writeUnproved puts in plain sight what rests on nothing.
func (p *page) writeUnproved(w io.Writer) {
	fmt.Fprint(w, "\n## Without a test\n\nPromised today:\n\n")
	n := 0
	for _, row := range p.promises {
		if len(row.tests) == 0 {
			fmt.Fprintf(w, "- **%s**\n", row.name)
			n++
		}
	}
	if n == 0 {
		fmt.Fprintln(w, "- nothing")
	}
	fmt.Fprint(w, "\nNot built, and so not promised:\n\n")
	for _, g := range p.guarantees {
		if len(p.testsOf(&g)) == 0 {
			fmt.Fprintf(w, "- G%d: %s Comes %s.\n", g.number, g.words, g.later)
		}
	}
	fmt.Fprint(w, "\nNot built of what is promised in part:\n\n")
	for _, g := range p.guarantees {
		if len(p.testsOf(&g)) > 0 && g.later != "" {
			fmt.Fprintf(w, "- G%d: %s Not yet: %s.\n", g.number, g.words, g.later)
		}
	}
}

func (p *page) writeMutants(w io.Writer) {
	fmt.Fprint(w, "\n## Sabotage\n\nEach row breaks the code on purpose; the tests named have to fail then.\n\n")
	if len(p.mutants) == 0 {
		fmt.Fprintf(w, "None: %s.\n", notRun)
		return
	}
	fmt.Fprint(w, "| | sabotage | what goes wrong | found by tests of |\n|---|---|---|---|\n")
	for _, m := range p.mutants {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", cell(m.number), cell(m.name), cell(m.breaks), cell(m.tests))
	}
}

func (p *page) writeBugs(w io.Writer) {
	fmt.Fprint(w, `
## What broke elsewhere

Defects of public projects, by the reports there, which we did not all reproduce:
they are ideas for tests and no statement about what those projects are today.

| | where | what happened | our test |
|---|---|---|---|
`)
	for _, b := range p.bugs {
		ours := spans(strings.Fields(b.tests))
		if b.not != "" {
			ours = strings.TrimSpace(ours + " " + b.not)
		}
		fmt.Fprintf(w, "| B%03d | %s | %s | %s |\n", b.number, cell(b.where), cell(b.what), ours)
	}
}

func (p *page) writeRecord(w io.Writer) {
	fmt.Fprint(w, `
## Track record

Each defect of correctness that Nixie itself had in a commit that others could
have. All were mended before the first release. To see one again, put the tests of
the commit that mended it beside the code before it:
`+"`git checkout COMMIT~1 && git checkout COMMIT -- FILE_test.go`"+`, and run what is named.

| mended in | what was wrong | found by | held by |
|---|---|---|---|
`)
	for _, m := range p.record {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", m.commit, cell(m.what), cell(m.foundBy), spans(strings.Fields(m.tests)))
	}
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// spans writes names of tests.
func spans(tests []string) string {
	if len(tests) == 0 {
		return ""
	}
	return "`" + strings.Join(tests, "` `") + "`"
}
