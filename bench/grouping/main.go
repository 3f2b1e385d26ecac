// Command grouping scores how well failures are grouped by their cause: Nixie and other ways, over
// lines whose cause is known.
//
//	go run ./grouping -loghub DIR [-lines all|made|kept]
//
// DIR has labelled files of the Loghub data sets. Precision and recall count pairs of lines; exact
// is the share of lines whose group has all lines of their cause and no other. Each way is told the
// text of a line and the component that wrote it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/nixie-go/nixie/internal/proof/grouping"
)

func main() {
	dir := flag.String("loghub", "", "the folder with the labelled files")
	lines := flag.String("lines", "all", "which lines count: all, those that rules were made with (made), or every fifth (kept)")
	flag.Parse()
	if err := run(os.Stdout, *dir, *lines); err != nil {
		fmt.Fprintln(os.Stderr, "grouping:", err)
		os.Exit(1)
	}
}

// run prints the table of a folder.
func run(out io.Writer, dir, lines string) error {
	if dir == "" {
		return errors.New("-loghub is missing: name the folder with the files *_2k.log_structured.csv")
	}
	count, known := map[string]func(grouping.Line) bool{
		"all":  func(grouping.Line) bool { return true },
		"made": func(l grouping.Line) bool { return !l.KeptOut() },
		"kept": grouping.Line.KeptOut,
	}[lines]
	if !known {
		return fmt.Errorf("-lines %s is unknown: say all, made or kept", lines)
	}
	systems, err := grouping.Loghub(dir)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tlines\tcauses\t")
	for _, way := range ways {
		fmt.Fprintf(w, "%s\tprecision\trecall\texact\t", way.name)
	}
	fmt.Fprintln(w)
	scores := make([][]grouping.Score, len(ways))
	for _, system := range systems {
		var chosen []grouping.Line
		for _, line := range system {
			if count(line) {
				chosen = append(chosen, line)
			}
		}
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
