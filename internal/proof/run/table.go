package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/internal/proof"
)

const (
	tableFile = "internal/proof/deep.json" // what deep runs did, for other clones to go on from
	page      = "docs/trust.md"            // what shows it
)

// marked is the part of the page that make trust writes.
var marked = regexp.MustCompile(`(?s)<!-- make trust -->\n.*<!-- end -->\n`)

// readTable reads what deep runs did.
func readTable(root string) ([]proof.Progress, error) {
	var rows []proof.Progress
	data, err := os.ReadFile(filepath.Join(root, tableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := errors.Join(err, json.Unmarshal(data, &rows)); err != nil {
		return nil, fmt.Errorf("%s: %w", tableFile, err)
	}
	return rows, nil
}

func keepTable(root string, rows []proof.Progress) error {
	slices.SortFunc(rows, func(a, b proof.Progress) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.MarshalIndent(rows, "", "  ")
	return errors.Join(err, os.WriteFile(filepath.Join(root, tableFile), append(data, '\n'), 0o644))
}

// shown returns the page with the table of what deep runs did.
func shown(root string) (before, after string, err error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	rows, err2 := readTable(root)
	if err := errors.Join(err, err2); err != nil {
		return "", "", err
	}
	table := "<!-- make trust -->\n\n| proof | done | wanted | violations | seconds | on | commit |\n|---|---|---|---|---|---|---|\n"
	for _, g := range rows {
		table += line(g)
	}
	return string(text), marked.ReplaceAllLiteralString(string(text), table+"\n<!-- end -->\n"), nil
}

// writeTable writes what deep runs did into the page.
func writeTable(root string) error {
	_, text, err := shown(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), []byte(text), 0o644)
}

func line(g proof.Progress) string {
	return fmt.Sprintf("| %s | %s %s | %s | %d | %.0f | %s | %s |\n",
		g.Name, grouped(g.Count), g.Unit, grouped(g.Want), g.Violations, g.Seconds, g.Date, g.Commit)
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
