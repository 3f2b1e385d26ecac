package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// The manual is docs/cli in the form that man reads. A test keeps those pages equal to the help of
// the program, so the manual is as well, and the program need not print it.

// manual makes a page for nixie and one for each command.
func (s *source) manual() ([]entry, error) {
	commands, err := filepath.Glob(filepath.Join(s.dir, "docs", "cli", "*.md"))
	if err != nil {
		return nil, err
	}
	names := []string{"docs/cli.md"}
	for _, c := range commands {
		names = append(names, "docs/cli/"+filepath.Base(c))
	}
	var all []entry
	for _, name := range names {
		text, err := s.read(name)
		if err != nil {
			return nil, err
		}
		title, body, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		if name == "docs/cli.md" {
			title, body = "nixie", "Retries and a dead letter office for work that can fail.\n"+body
		}
		page := strings.ReplaceAll(title, " ", "-")
		// Words stay whole, so that they can be copied: no hyphens, and no blanks to fill a line.
		head := fmt.Sprintf(".TH %s 1 %s \"nixie %s\"\n.nh\n.ad l\n",
			roff(strings.ToUpper(page)), s.when.Format("2006-01-02"), roff(s.version))
		all = append(all, entry{name: "man/man1/" + page + ".1", mode: 0o644, body: []byte(head + manualPage(title, body))})
	}
	return all, nil
}

// page is a page of the manual while it is written.
type page struct {
	strings.Builder
	title   string
	section string
	code    string // the section of the code that is read; "" outside
	example bool   // the code that comes is an example
	kept    bool   // lines stay as they are
	begun   bool   // a line of the paragraph went before
	named   bool   // sections have headings of their own
	table   bool   // a line of the table went before
}

// manualPage writes what follows the title of a page.
func manualPage(title, body string) string {
	p := &page{title: title}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		switch fence := strings.HasPrefix(line, "```"); {
		case strings.HasPrefix(line, "<!--"):
		case fence && p.code == "":
			p.code = "DESCRIPTION"
			if p.example {
				p.code = "EXAMPLES"
			}
		case fence:
			p.keep(false)
			p.code, p.example, p.begun = "", false, false
		case line == "":
			p.begun, p.table = false, false
		case p.code != "":
			p.coded(line)
		case line[0] == '|':
			p.row(line)
		default:
			p.prose(line)
		}
	}
	return p.String()
}

// in begins a section, if it is not the one that is written.
func (p *page) in(section string) {
	if p.section != section {
		p.keep(false)
		fmt.Fprintf(p, ".SH %s\n", section)
		p.section, p.begun = section, true
	}
}

// keep makes lines stay as they are, or fills them.
func (p *page) keep(kept bool) {
	if p.kept != kept {
		p.kept = kept
		p.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[kept])
	}
}

// paragraph begins a paragraph before its first line.
func (p *page) paragraph() {
	if !p.begun {
		p.WriteString(".PP\n")
	}
	p.begun = true
}

// prose writes a line of text, or begins a section with it.
func (p *page) prose(line string) {
	switch heading, is := strings.CutPrefix(line, "## "); {
	case is:
		p.named = true
		p.in(strings.ToUpper(heading))
	case p.section == "":
		p.in("NAME")
		fmt.Fprintf(p, "%s \\- %s\n", roff(strings.ReplaceAll(p.title, " ", "-")), inline(strings.TrimSuffix(line, ".")))
	case line == "For example:":
		p.example = true
	default:
		if strings.HasPrefix(line, "Output, exit codes and ") {
			p.in("SEE ALSO")
		} else if p.section == "NAME" {
			p.in("DESCRIPTION")
		}
		p.paragraph()
		p.line(inline(line))
	}
}

// coded writes a line of code: of usage, of examples, or of help, whose indented lines are lists.
func (p *page) coded(line string) {
	if p.section == "NAME" && strings.HasPrefix(line, p.title) {
		p.in("SYNOPSIS")
		fmt.Fprintf(p, "\\fB%s\\fR%s\n", roff(p.title), roff(line[len(p.title):]))
		return
	}
	p.in(p.code)
	p.keep(p.example || line[0] == ' ')
	p.paragraph()
	p.line(roff(line))
}

// line writes a line that is no request, though it may begin with a dot.
func (p *page) line(text string) {
	if strings.HasPrefix(text, ".") {
		p.WriteString(`\&`)
	}
	p.WriteString(text + "\n")
}

// row writes a line of a table: a term and what it means. The first one is the head.
func (p *page) row(line string) {
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	switch {
	case !p.table:
		p.table = true
		switch of := map[string]string{"flag": "OPTIONS", "command": "COMMANDS"}[cells[0]]; {
		case of == "": // the head says what the terms are, as in "code means"
			p.paragraph()
			p.line(inline(strings.Join(cells, " ")) + ":")
		case !p.named:
			p.in(of)
		}
	case !strings.HasPrefix(line, "|---"):
		meaning := inline(cells[len(cells)-1])
		if len(cells) == 3 && cells[1] != "" {
			meaning += " (default " + inline(cells[1]) + ")"
		}
		p.WriteString(".TP\n")
		p.line(inline(cells[0]))
		p.line(meaning)
	}
}

var (
	spans    = regexp.MustCompile("\\[[^]]*\\]\\([^)]*\\)|`[^`]*`") // links and code
	unmarked = strings.NewReplacer(`\|`, "|", "&lt;", "<", "`", "")
)

// inline writes text with its marks: code is bold, and a link names the page that it leads to.
func inline(text string) string {
	var b strings.Builder
	for at := 0; at < len(text); {
		next := spans.FindStringIndex(text[at:])
		if next == nil {
			next = []int{len(text) - at, len(text) - at}
		}
		b.WriteString(roff(unmarked.Replace(text[at : at+next[0]])))
		if span := text[at+next[0] : at+next[1]]; span != "" {
			label, target, link := strings.Cut(strings.TrimPrefix(span, "["), "](")
			label = unmarked.Replace(label)
			switch {
			case link && strings.HasSuffix(target, "cli.md)"):
				label = "nixie(1)"
			case link:
				label = strings.ReplaceAll(label, " ", "-") + "(1)"
			}
			b.WriteString(`\fB` + roff(label) + `\fR`)
		}
		at += next[1]
	}
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// roff writes text so that man shows it and can be copied from: no character acts, and none becomes
// another one.
func roff(text string) string {
	var b strings.Builder
	for _, r := range escapes.Replace(text) {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
