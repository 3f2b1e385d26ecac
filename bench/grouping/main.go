// Command grouping scores how well failures are grouped by their cause: Nixie and other ways, over
// lines whose cause is known.
//
//	go run ./grouping [-loghub DIR] [-causes FILE] [-lines all|made|kept]
//
// DIR has labelled files of the Loghub data sets, FILE what real tools printed, see ./causes.
// Precision and recall count pairs of lines; exact is the share of lines whose group has all lines
// of their cause and no other. Each way is told the text of a line and its origin: a component of a
// system, or a tool with the type of its error. Of what a tool printed the text is the line that
// says why, as [policy.WhyOf] finds it, so all ways profit from it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"

	"github.com/nixie-go/nixie/internal/proof/grouping"
	"github.com/nixie-go/nixie/policy"
)

func main() {
	dir := flag.String("loghub", "", "the folder with the labelled files")
	file := flag.String("causes", "", "the file with what tools printed")
	lines := flag.String("lines", "all", "which lines count: all, those that rules were made with (made), or every fifth (kept)")
	flag.Parse()
	if err := run(os.Stdout, *dir, *file, *lines); err != nil {
		fmt.Fprintln(os.Stderr, "grouping:", err)
		os.Exit(1)
	}
}

// run prints the tables of a folder and of a file.
func run(out io.Writer, dir, file, lines string) error {
	if dir == "" && file == "" {
		return errors.New("-loghub and -causes are missing: name the folder with the files *_2k.log_structured.csv, or a file of causes")
	}
	counts, known := map[string]func(grouping.Line) bool{
		"all":  func(grouping.Line) bool { return true },
		"made": func(l grouping.Line) bool { return !l.KeptOut() },
		"kept": grouping.Line.KeptOut,
	}[lines]
	if !known {
		return fmt.Errorf("-lines %s is unknown: say all, made or kept", lines)
	}
	if dir != "" {
		systems, err := grouping.Loghub(dir)
		if err != nil {
			return err
		}
		if err := printTable(out, systems, counts); err != nil {
			return err
		}
	}
	if file == "" {
		return nil
	}
	languages, err := byLanguage(file)
	if err != nil {
		return err
	}
	return printTable(out, languages, counts)
}

// byLanguage reads a file of causes, by the language that each was made with.
func byLanguage(file string) (languages [][]grouping.Line, err error) {
	causes, err := grouping.Causes(file)
	if err != nil {
		return nil, err
	}
	of := map[string][]grouping.Line{}
	for _, c := range causes {
		why := cmp.Or(policy.WhyOf([]byte(c.Stderr), []byte(c.Stdout)), fmt.Sprintf("exit status %d", c.Exit))
		system := map[bool]string{true: "other tools", false: c.Language}[c.Language == "-"]
		of[system] = append(of[system], grouping.Line{
			System: system, Number: c.Variant, Origin: c.Tool + " " + typeOfError.FindString(why), Label: c.Label(), Text: why, Cause: &c,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		languages = append(languages, of[name])
	}
	return languages, nil
}

// typeOfError matches the type that the line of an error begins with.
var typeOfError = regexp.MustCompile(`^[\w.:\\]*(?:Error|Exception)\b`)

// printTable prints the scores of each way over systems, for the lines that count.
func printTable(out io.Writer, systems [][]grouping.Line, counts func(grouping.Line) bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tlines\tcauses\t")
	for _, way := range ways {
		fmt.Fprintf(w, "%s\tprecision\trecall\texact\t", way.name)
	}
	fmt.Fprintln(w)
	scores := make([][]grouping.Score, len(ways))
	for _, system := range systems {
		chosen := slices.DeleteFunc(slices.Clone(system), func(l grouping.Line) bool { return !counts(l) })
		if len(chosen) == 0 {
			continue
		}
		row := make([]grouping.Score, len(ways))
		for i, way := range ways {
			row[i] = score(chosen, way.grouper())
			scores[i] = append(scores[i], row[i])
		}
		printRow(w, chosen[0].System, row)
	}
	means := make([]grouping.Score, len(ways))
	for i := range ways {
		means[i] = grouping.Mean(scores[i])
	}
	printRow(w, "mean", means)
	fmt.Fprintln(w)
	return w.Flush()
}

func score(lines []grouping.Line, group grouper) grouping.Score {
	members := make([]grouping.Pair, len(lines))
	for i, line := range lines {
		members[i] = grouping.Pair{Label: line.Label, Group: group(line)}
	}
	return grouping.Of(members)
}

func printRow(w io.Writer, name string, row []grouping.Score) {
	fmt.Fprintf(w, "%s\t%d\t%d\t", name, row[0].Members, row[0].Labels)
	for _, s := range row {
		fmt.Fprintf(w, "%d groups\t%.3f\t%.3f\t%.3f\t", s.Groups, s.Precision, s.Recall, s.Exact)
	}
	fmt.Fprintln(w)
}
