package cli

import (
	"io"
	"strings"
)

// tableChunk is how many rows a table looks at before it fixes its widths: what
// it holds in memory.
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

// table aligns rows of escaped text. Later rows never get narrower columns.
type table struct {
	out     io.Writer
	heads   []heading
	limit   int // columns of the terminal; 0 is any number
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

// flush writes the rows that are held.
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

// fit makes the columns narrower until they fit: first those that may be cut,
// the widest first.
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
