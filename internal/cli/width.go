package cli

import (
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// defaultWidth is the width of a terminal that does not tell.
const defaultWidth = 100

// width is how many columns the output has; 0 is any number, as when it is not a
// terminal.
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

// columnsOf asks a terminal for its width; 0 is when it does not tell, or is none.
func columnsOf(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// displayWidth is how many columns of a terminal a line takes.
func displayWidth(s string) int { return condition().StringWidth(s) }

// cut shortens a line to n columns and shows that it did.
func cut(s string, n int) string {
	if displayWidth(s) <= n {
		return s
	}
	return condition().Truncate(s, max(n, 1), "…")
}

// pad fills a line up to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-displayWidth(s), 0)) }

// condition fixes the widths, whatever the locale says.
func condition() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }
