package grouping

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Line is a line of a log with the template that it was labelled with.
type Line struct {
	System string
	Number int    // from 1 on, in the file of the system
	Origin string // the component that wrote it, "" if the log does not say
	Label  string
	Text   string
	Cause  *Cause // what printed it; nil for a line of a log
}

// KeptOut reports whether a line is one of every five that are not looked at while rules are made.
func (l Line) KeptOut() bool { return l.Number%5 == 0 }

// suffix ends the names of the labelled files of the Loghub data sets.
const suffix = "_2k.log_structured.csv"

// Loghub reads the error-like lines of a folder with labelled files of the Loghub data sets, by
// system in the order of their names: lines whose level is an error or a warning, or whose template
// has a word of an error.
func Loghub(dir string) ([][]Line, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s has no file *%s", dir, suffix)
	}
	slices.Sort(files)
	var systems [][]Line
	for _, file := range files {
		lines, err := readLines(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		systems = append(systems, lines)
	}
	return systems, nil
}

// FindLoghub returns the folder with the labelled files: the one that NIXIE_TEST_LOGHUB names, or
// corpora/loghub in a neighbour of the repository, whose folder is root. It returns "" if there is
// none.
func FindLoghub(root string) string {
	if dir := os.Getenv("NIXIE_TEST_LOGHUB"); dir != "" {
		return dir
	}
	found, err := filepath.Glob(filepath.Join(root, "..", "*", "corpora", "loghub"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

func readLines(file string) (lines []Line, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, name := range [...]string{"LineId", "Content", "EventId", "EventTemplate"} {
		if _, has := at[name]; !has {
			return nil, fmt.Errorf("it has no column %s", name)
		}
	}
	system := strings.TrimSuffix(filepath.Base(file), suffix)
	for _, row := range rows[1:] {
		cell := func(name string) string {
			if i, has := at[name]; has {
				return row[i]
			}
			return ""
		}
		if !isErrorLike(cell("Level"), cell("EventTemplate")) {
			continue
		}
		number, err := strconv.Atoi(cell("LineId"))
		if err != nil {
			return nil, err
		}
		lines = append(lines, Line{
			System: system, Number: number, Origin: cell("Component"), Label: cell("EventId"), Text: cell("Content"),
		})
	}
	return lines, nil
}

var (
	errorLevels = []string{"e", "w", "f", "error", "warn", "warning", "fatal", "severe"}
	errorWords  = []string{
		"fail", "error", "exception", "refused", "denied", "unable", "cannot", "can't", "timed out", "timeout", "invalid",
		"not found", "abort", "unreachable",
	}
)

func isErrorLike(level, template string) bool {
	template = strings.ToLower(template)
	return slices.Contains(errorLevels, strings.ToLower(level)) ||
		slices.ContainsFunc(errorWords, func(word string) bool { return strings.Contains(template, word) })
}
