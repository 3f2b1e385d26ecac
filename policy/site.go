package policy

import (
	"regexp"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// firstLine matches the line that names the outermost error, where it begins a stack.
var firstLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^(?:Exception in thread "[^"]*" |(?:PHP Fatal error:  )?Uncaught |Unhandled [Ee]xception[.:]? |\*\* \()?` +
			`(?P<type>[A-Za-z_][\w.$\\]*(?:::\w+)*)(?:\)|: |$| ---> |\x60)`)
})

// reader is a language whose patterns are compiled.
type reader struct {
	language
	frame, head, forget, library, weak *regexp.Regexp
}

var readers = sync.OnceValue(func() []reader {
	pattern := func(s string) *regexp.Regexp {
		if s == "" {
			return nil
		}
		return regexp.MustCompile(s)
	}
	list := make([]reader, len(languages))
	for i, l := range languages {
		list[i] = reader{l, pattern(l.frame), pattern(l.head), pattern(l.forget), pattern(l.library), pattern(l.weak)}
	}
	return list
})

// site tells where a failure happened: the innermost error of an explicit chain and the newest
// function that is the program's own, or else the newest. What is unknown is "".
type site struct{ kind, function string }

// linesToTell limits the lines of a stack that are tried to tell its language.
const linesToTell = 40

// siteOf reads a stack of a language in the table. It returns nothing for another.
func siteOf(stack string) site {
	for i := range readers() {
		r := &readers()[i]
		tried := 0
		for line := range strings.Lines(stack) {
			if tried++; tried > linesToTell {
				break
			}
			if r.read(head(line, maxChunk)).function != "" {
				return r.site(stack)
			}
		}
	}
	return site{}
}

// blocks are the frames of the error that is read and of those that it caused, newest first but for
// newestLast.
type blocks struct {
	kind          string
	own, all      string // the newest frame of this error that is the program's own, and of all
	newest        bool   // the frame above is own
	weak          bool   // own needs its caller
	outer, oldest string // the same of errors around it
}

// site reads a whole stack.
func (r *reader) site(stack string) site {
	var b blocks
	var before frameOf
	first, ended := true, false
	join := r.name == "rust"
	lines := strings.Split(strings.ReplaceAll(stack, "\r\n", "\n"), "\n")
	for i, line := range lines {
		line = head(line, maxChunk)
		if strings.TrimSpace(line) == "" {
			continue
		}
		if join && i+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(lines[i+1], " "), "at ") {
			line += " " + strings.TrimSpace(lines[i+1])
		}
		if r.forget != nil && r.forget.MatchString(line) {
			b, ended = blocks{}, false
			continue
		}
		f := r.read(line)
		if kind := r.kindOf(line, first, f.function != ""); kind != "" && !ended {
			switch {
			case r.newestLast:
				b.kind, ended = kind, true
			case r.firstCause && !first:
				ended = true
			default:
				b.begin(kind)
			}
		}
		first = false
		if f.function == "" {
			if at := thrownIn().FindStringSubmatch(line); at != nil {
				before = frameOf{path: at[1]}
			}
			continue
		}
		if !ended {
			b.add(r, f, before)
		}
		before = f
	}
	for _, function := range [...]string{b.own, b.outer, b.all, b.oldest} {
		if function != "" {
			return site{b.kind, function}
		}
	}
	return site{kind: b.kind}
}

// kindOf returns the type of an error that a line begins, or "".
func (r *reader) kindOf(line string, first, isFrame bool) string {
	if r.head != nil {
		if found := r.head.FindAllStringSubmatch(line, -1); found != nil && !(r.newestLast && isFrame) {
			return found[len(found)-1][r.head.SubexpIndex("type")]
		}
	}
	if first && !isFrame && !r.newestLast {
		if found := firstLine().FindStringSubmatch(line); found != nil {
			return found[firstLine().SubexpIndex("type")]
		}
	}
	return ""
}

func (b *blocks) begin(kind string) {
	outer, oldest := b.outer, b.oldest
	if outer == "" {
		outer = b.own
	}
	if oldest == "" {
		oldest = b.all
	}
	*b = blocks{kind: kind, outer: outer, oldest: oldest}
}

// add adds a frame. Before is the one above it.
func (b *blocks) add(r *reader, f, before frameOf) {
	if r.callerFile {
		f.library = f.library || r.library.MatchString(before.path)
	}
	if r.sameLine && b.newest && f.line == before.line && f.file == before.file {
		b.own, b.all = "", "" // the one before is the runtime's, called by this one
	}
	b.newest = b.own == "" && !f.library
	isWeak := r.weak != nil && r.weak.MatchString(f.function)
	switch {
	case r.newestLast:
		b.all = f.function
		if isWeak {
			b.all += " < " + before.function
		}
		if !f.library {
			b.own = b.all
		}
		return
	case b.weak && !f.library:
		b.own += " < " + f.function
		b.weak = isWeak && len(b.own) < nixie.MaxName
	case !f.library && b.own == "":
		b.own, b.weak = f.function, isWeak
	}
	if b.all == "" {
		b.all = f.function
	}
}

// frameOf is a frame.
type frameOf struct {
	function         string // "" if the line is no frame
	file, path, line string
	library          bool // not the program's own
}

// read reads a line of a stack.
func (r *reader) read(line string) (f frameOf) {
	found := r.frame.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	if found == nil {
		return f
	}
	for i, name := range r.frame.SubexpNames() {
		switch {
		case found[i] == "":
		case name == "func":
			f.function = found[i]
		case name == "file":
			f.file = found[i]
		case name == "path":
			f.path = found[i]
		case name == "line":
			f.line = found[i]
		}
	}
	at := f.file
	if !r.callerFile {
		at += f.path
	}
	f.library = r.library.MatchString(f.function) || at != "" && r.library.MatchString(at)
	f.function = strings.TrimSpace(shortFile(f.file) + " " + drawnNumbers().ReplaceAllString(f.function, ""))
	return f
}

// thrownIn matches the end of a line that says where an error was thrown.
var thrownIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` in (\S+?)(?::\d+| on line \d+)$`)
})

// drawnNumbers match the numbers that compilers give to functions without a name.
var drawnNumbers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`::h[0-9a-f]{16}$|\$+\d+|__\d+(?:_\d+)*|DisplayClass\d+_\d+|\x60\d+|0x[0-9a-f]+|/\d+-lists.*$`)
})

// shortFile returns the name of a file and of its folder, unless a deployment gave that its name.
func shortFile(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	file = strings.TrimPrefix(file, "file://")
	at := strings.LastIndexByte(file, '/')
	if at < 0 {
		return file
	}
	folder := file[:at][strings.LastIndexByte(file[:at], '/')+1:]
	if folder == "" || folder == "." || strings.ContainsFunc(folder, isDigit) || isRandom(folder) {
		return file[at+1:]
	}
	return folder + file[at:]
}
