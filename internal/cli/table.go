package cli

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// tableChunk is the number of rows that a table holds in memory before it fixes its widths.
const tableChunk = 1_000

// leastColumn is the width below which no column is cut.
const leastColumn = 8

// heading is a column of a table.
type heading struct {
	text  string
	right bool // numbers
	flex  bool // cut first when the terminal is narrow
}

// cell is a text in a table.
type cell struct {
	text string
	ink  ink // on a terminal with colours
}

// table aligns rows of escaped text. Columns never get narrower in later rows.
type table struct {
	out     io.Writer
	heads   []heading
	limit   int // columns of the terminal; 0: no limit
	colours bool
	rows    [][]cell
	widths  []int
	begun   bool
}

func newTable(out io.Writer, limit int, colours bool, heads ...heading) *table {
	return &table{out: out, heads: heads, limit: limit, colours: colours, widths: make([]int, len(heads))}
}

// add takes a row; its cells may be foreign text.
func (t *table) add(row ...cell) error {
	for i := range row {
		row[i].text = escapeLine(row[i].text)
	}
	t.rows = append(t.rows, row)
	if len(t.rows) < tableChunk {
		return nil
	}
	return t.flush()
}

// flush writes the rows that it holds.
func (t *table) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	if !t.begun {
		head := make([]cell, len(t.heads))
		for i, h := range t.heads {
			head[i] = cell{h.text, bold}
		}
		t.rows = append([][]cell{head}, t.rows...)
		t.begun = true
	}
	for _, row := range t.rows {
		for i, c := range row {
			t.widths[i] = max(t.widths[i], displayWidth(c.text))
		}
	}
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		t.write(&b, row, widths)
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.out, b.String())
	return err
}

// write writes a row without blanks at its end.
func (t *table) write(b *strings.Builder, row []cell, widths []int) {
	blanks := 0
	for i, c := range row {
		text := cut(c.text, widths[i])
		fill := widths[i] - displayWidth(text)
		before := 0
		if t.heads[i].right {
			before, fill = fill, 0
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blanks+before))
			blanks = 0
			if t.colours {
				text = c.ink.in(text)
			}
			b.WriteString(text)
		} else {
			blanks += before
		}
		blanks += fill + 2
	}
	b.WriteByte('\n')
}

// fit makes columns narrower until the row fits: the widest flexible ones first, then the others.
func (t *table) fit() []int {
	widths := append([]int(nil), t.widths...)
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for _, flex := range [...]bool{true, false} {
		for t.limit > 0 && total > t.limit {
			widest := -1
			for i, w := range widths {
				if t.heads[i].flex == flex && w > leastColumn && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths
}

// ink is the colour of a cell on a terminal.
type ink string

// The inks, as parameters of the sequence that begins them.
const (
	bold   ink = "1"
	faint  ink = "2"
	red    ink = "31" // needs a person
	green  ink = "32" // done
	yellow ink = "33" // waits
)

// The choices of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// colours reports whether to colour output. --color decides; with auto the terminal, NO_COLOR and
// TERM do.
func (g *globals) colours(terminal bool) bool {
	switch g.color {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return terminal && g.Env("NO_COLOR") == "" && g.Env("TERM") != "dumb"
}

// in colours a text that is escaped already; the empty ink leaves it as it is.
func (i ink) in(text string) string {
	if i == "" || text == "" {
		return text
	}
	return "\x1b[" + string(i) + "m" + text + "\x1b[0m"
}

// inkIf returns an ink if is holds.
func inkIf(is bool, i ink) ink {
	if is {
		return i
	}
	return ""
}

// defaultWidth is the width of a terminal that does not tell its own.
const defaultWidth = 100

// width returns the columns of the output; 0 is no limit, as when it is no terminal.
func (s *Streams) width() int {
	if !s.OutTTY {
		return 0
	}
	if s.Columns > 0 {
		return s.Columns
	}
	if w, err := strconv.Atoi(s.Env("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return defaultWidth
}

// columnsOf returns the columns of a terminal, or 0.
func columnsOf(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// displayWidth counts the terminal columns of a line.
func displayWidth(s string) int { return condition().StringWidth(s) }

// cut shortens a line to n columns and marks the cut.
func cut(s string, n int) string {
	if displayWidth(s) <= n {
		return s
	}
	return condition().Truncate(s, max(n, 1), "…")
}

// condition fixes the widths of characters for every locale.
func condition() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }
