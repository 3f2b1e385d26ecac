package cli

// ink is how a cell looks on a terminal with colours.
type ink string

// The inks, as parameters of the sequence that begins them.
const (
	bold   ink = "1"
	faint  ink = "2"
	red    ink = "31" // somebody has to look
	green  ink = "32" // done
	yellow ink = "33" // waits
)

// The choices of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// colours reports whether output is coloured that goes to a terminal, or not:
// --color decides, and what it leaves open the terminal and NO_COLOR.
func (g *globals) colours(terminal bool) bool {
	switch g.color {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return terminal && g.Env("NO_COLOR") == "" && g.Env("TERM") != "dumb"
}

// in writes a text that needs no escaping with an ink; the empty one is plain.
func (i ink) in(text string) string {
	if i == "" || text == "" {
		return text
	}
	return "\x1b[" + string(i) + "m" + text + "\x1b[0m"
}

// inkIf returns an ink if something is so.
func inkIf(is bool, i ink) ink {
	if is {
		return i
	}
	return ""
}
