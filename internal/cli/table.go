package cli

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/nixie-go/nixie"
)

// tableChunk is the number of rows that a table holds in memory before it fixes its widths.
const tableChunk = 1_000

// Widths of a table on a narrow terminal.
const (
	leastColumn = 8  // of the last text, which alone is cut
	enoughText  = 24 // of the last text, for which other columns are left out
)

// shownDigits are the last digits of an ID that a table shows, unless two rows agree in them.
const shownDigits = 8

// heading is a column of a table.
type heading struct {
	text  string
	right bool // numbers
	flex  bool // a name or text: the last one gets the room that is left
	prose bool // a sentence: broken into lines where another text is cut
	id    bool // only the last digits are shown
	spare int  // left out when the terminal is narrow, the highest first; 0: by its position
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
	absent  []bool // columns that are left out
	begun   bool   // the heading is there
	written bool   // and rows
}

func newTable(out io.Writer, limit int, colours bool, heads ...heading) *table {
	return &table{out: out, heads: heads, limit: limit, colours: colours, widths: make([]int, len(heads)), absent: make([]bool, len(heads))}
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
	for i, h := range t.heads {
		if h.id {
			shorten(t.rows, i)
		}
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
	if last := t.lastText(); last >= 0 && !t.heads[last].prose {
		tellApart(t.rows, last, widths[last])
	}
	var b strings.Builder
	for _, row := range t.rows {
		t.write(&b, row, widths)
	}
	t.rows, t.written = t.rows[:0], true
	_, err := io.WriteString(t.out, b.String())
	return err
}

// write writes a row without blanks at the ends of its lines.
func (t *table) write(b *strings.Builder, row []cell, widths []int) {
	cells, height := make([][]string, len(row)), 1
	for i, c := range row {
		if cells[i] = []string{cut(c.text, widths[i])}; t.heads[i].prose && cells[i][0] != c.text {
			cells[i] = wrapped(c.text, widths[i])
		}
		height = max(height, len(cells[i]))
	}
	for line := range height {
		blanks := 0
		for i, c := range row {
			if t.absent[i] {
				continue
			}
			text := ""
			if line < len(cells[i]) {
				text = cells[i][line]
			}
			fill, before := widths[i]-displayWidth(text), 0
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
}

// lastText returns the column that gets the room that is left, or -1.
func (t *table) lastText() int {
	for i := len(t.heads) - 1; i > 0; i-- {
		if t.heads[i].flex {
			return i
		}
	}
	return -1
}

// fit breaks sentences and then leaves columns out until the last text has room enough, and cuts
// that text alone. The first column stays.
func (t *table) fit() []int {
	widths := append([]int(nil), t.widths...)
	last := t.lastText()
	if t.limit == 0 {
		return widths
	}
	for {
		room := t.limit + 2
		for i, w := range widths {
			if i != last && !t.absent[i] {
				room -= w + 2
			}
		}
		need := 2
		if last >= 0 {
			need = min(widths[last], enoughText) + 2
		}
		if room < need && t.breakLongest(widths, last) {
			continue
		}
		spare := t.mostSpare(last)
		if room >= need || spare < 0 {
			if last >= 0 {
				widths[last] = min(widths[last], max(room-2, leastColumn))
			}
			return widths
		}
		t.absent[spare] = true
	}
}

// breakLongest narrows the widest column of sentences but the last one, if it is wider than it has
// to be.
func (t *table) breakLongest(widths []int, last int) bool {
	widest := -1
	for i, h := range t.heads {
		if h.prose && i != last && !t.absent[i] && widths[i] > enoughText && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	if widest >= 0 {
		widths[widest] = enoughText
	}
	return widest >= 0
}

// mostSpare returns the column to leave out next, or -1. Once rows are written there is none.
func (t *table) mostSpare(last int) (most int) {
	if most = -1; t.written {
		return most
	}
	for i := 1; i < len(t.heads); i++ {
		if i != last && !t.absent[i] && (most < 0 || t.heads[i].spare >= t.heads[most].spare) {
			most = i
		}
	}
	return most
}

// shorten leaves the last digits of the IDs in a column, more than usual if two of them agree.
func shorten(rows [][]cell, column int) {
	whole := map[string]bool{}
	for _, row := range rows {
		whole[row[column].text] = true
	}
	digits := shownDigits
	for digits < 32 && !differ(whole, digits) {
		digits++
	}
	for _, row := range rows {
		row[column].text = ending(row[column].text, digits)
	}
}

// differ reports whether the last digits of some IDs tell them from each other.
func differ(whole map[string]bool, digits int) bool {
	seen := map[string]bool{}
	for id := range whole {
		seen[ending(id, digits)] = true
	}
	return len(seen) == len(whole)
}

// ending returns the last digits of an ID; what is none stays whole.
func ending(id string, digits int) string {
	if _, err := nixie.ParseID(id); err != nil {
		return id
	}
	plain := strings.ReplaceAll(id, "-", "")
	return plain[max(0, len(plain)-digits):]
}

// tellApart makes texts of a column differ that would be cut to the same: they begin where they
// differ.
func tellApart(rows [][]cell, column, width int) {
	alike := map[string][]string{}
	for _, row := range rows {
		text := row[column].text
		if short := cut(text, width); short != text && !slices.Contains(alike[short], text) {
			alike[short] = append(alike[short], text)
		}
	}
	for i, row := range rows {
		text := row[column].text
		same := alike[cut(text, width)]
		if len(same) < 2 || cut(text, width) == text {
			continue
		}
		common := len(same[0])
		for _, other := range same[1:] {
			for !strings.HasPrefix(other, same[0][:common]) {
				common--
			}
		}
		for common > 0 && !utf8.RuneStart(text[common]) {
			common--
		}
		rows[i][column].text = "…" + text[common:]
	}
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

// tableWidth is width for a table. A wide one has whole IDs and texts.
func (g *globals) tableWidth() int {
	if g.output == asWide {
		return 0
	}
	return g.width()
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
