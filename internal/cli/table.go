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

// table aligns rows of escaped text. Later rows never get narrower columns.
type table struct {
	out    io.Writer
	heads  []heading
	limit  int // columns of the terminal; 0 is any number
	rows   [][]string
	widths []int
	begun  bool
}

func newTable(out io.Writer, limit int, heads ...heading) *table {
	return &table{out: out, heads: heads, limit: limit, widths: make([]int, len(heads))}
}

// add takes a row; its cells may be foreign text.
func (t *table) add(cells ...string) error {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = escapeLine(c)
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
		head := make([]string, len(t.heads))
		for i, h := range t.heads {
			head[i] = h.text
		}
		t.rows = append([][]string{head}, t.rows...)
		t.begun = true
	}
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], displayWidth(cell))
		}
	}
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(pad(cut(cell, widths[i]), widths[i], t.heads[i].right))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.out, b.String())
	return err
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
