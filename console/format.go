package console

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// maxLine limits the characters of a text in a list; its own page has the whole.
const maxLine = 200

// functions are called by templates.
func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"link": c.link, "asset": func(name string) string { return c.Prefix + "assets/" + c.assets[name].name },
		"visible": visible, "num": number, "line": func(text any) string { return line(c.Mask.Text(fmt.Sprint(text))) },
		"whole": func(text any) string { return visible(c.Mask.Text(fmt.Sprint(text))) },
		"age":   func(at any) template.HTML { return c.age(moment(at)) },
		"time":  func(at any) template.HTML { return c.time(moment(at), secondForm) },
		"when": func(at any, text string) template.HTML {
			return c.stamp(moment(at), "", template.HTMLEscapeString(text))
		},
		"zone":  c.zone,
		"spark": spark, "icon": icon, "tone": tone, "plural": plural, "took": took,
		"column": column, "columnClass": columnClass, "columnName": columnName,
		"due": c.due, "bytes": size, "rule": office.RuleMeaning,
		"filter": func(pairs ...any) string {
			texts := make([]string, len(pairs))
			for i := range pairs {
				texts[i] = fmt.Sprint(pairs[i])
			}
			return term(texts...)
		},
		"lasting": func(v office.OperationView) string { return tookText(&v) },
		"staged":  c.staged, "menu": c.menu, "under": under, "short": short,
		"hours": c.hours, "axis": c.axis, "tabs": bodyForms, "hex": hexOf,
		"inc": func(i int) int { return i + 1 },
	}
}

// link returns the address of a page with the named values.
func (c *console) link(path string, pairs ...any) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			values.Add(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(values) == 0 {
		return c.Prefix + path
	}
	return c.Prefix + path + "?" + values.Encode()
}

// term returns the text of a filter that asks for a key and a value each.
func term(pairs ...string) string {
	var f nixie.Filter
	for i := 0; i+1 < len(pairs); i += 2 {
		value := pairs[i+1]
		switch pairs[i] {
		case "queue":
			if value != "" { // no queue has no name: it is all of them
				f.Queues = []string{value}
			}
		case "attempts":
			n, _ := strconv.ParseInt(value, 10, 64) // a number of ours
			f.Attempts = nixie.Range{Min: &n, Max: &n}
		case "stream":
			f.Streams = []string{value}
		case "type":
			f.Types = []string{value}
		case "reason":
			f.Reasons = []nixie.Reason{nixie.Reason(value)}
		case "status":
			f.Statuses = append(f.Statuses, nixie.Status(value))
		case "fingerprint":
			f.Fingerprints = []string{value}
		case "operation":
			f.Operation, _ = nixie.ParseID(value)
		}
	}
	return office.FilterText(f)
}

// line returns a text on one line, cut. A space that does not break stays, as those of numbers are.
func line(text any) string {
	breaks := func(r rune) bool { return unicode.IsSpace(r) && r != '\u202f' && r != '\u00a0' }
	s := strings.Join(strings.FieldsFunc(visible(fmt.Sprint(text)), breaks), " ")
	if runes := []rune(s); len(runes) > maxLine {
		return string(runes[:maxLine]) + "…"
	}
	return s
}

// visible makes control characters, and those that change the direction of a text, visible.
func visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		bidi := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || bidi) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// number writes a count with a thin space between its thousands.
func number(n any) string {
	switch known := n.(type) {
	case *int:
		n = *known
	case *int64:
		n = *known
	}
	return office.Thousands(fmt.Sprint(n))
}

// plural writes a count with its noun.
func plural(n any, noun string) string {
	s := number(n)
	if s != "1" {
		noun += "s"
	}
	return s + " " + noun
}

// size writes a number of bytes by its largest unit of 1024.
func size(n any) string {
	if known, ok := n.(*int64); ok {
		n = *known
	}
	value, _ := n.(int64)
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	at, whole := 0, float64(value)
	for whole >= 1024 && at < len(units)-1 {
		at, whole = at+1, whole/1024
	}
	if at == 0 {
		return plural(value, "byte")
	}
	return strconv.FormatFloat(whole, 'f', 1, 64) + " " + units[at]
}

// entry is a page in the menu.
type entry struct{ Path, Name, Icon string }

func (c *console) menu() []entry {
	var list []entry
	for _, p := range c.pages {
		if p.menu != "" {
			list = append(list, entry{strings.TrimSuffix(p.path, "{$}"), p.title, p.menu})
		}
	}
	return list
}

// under reports whether a page belongs to an entry of the menu: a letter to the letters.
func under(at, entry string) bool {
	first, _, _ := strings.Cut(at, "/")
	return first == entry || first+"s" == entry || first == "redrive" && entry == "letters"
}

// short is the end of an ID, which tells it from others at a look.
func short(id any) string {
	s := fmt.Sprint(id)
	return s[max(0, len(s)-8):]
}

// tone returns the meaning of a word of Nixie, as a class: bad, wait, good or none.
func tone(word any) string {
	switch fmt.Sprint(word) {
	case "open", "quarantined", "dead", "bury", "halt", "blocked", "discard", "permanent", "owner-gone", "lease-over":
		return "bad"
	case "review", "redriving", "retry", "leased", "waiting", "release", "extend", "run again",
		"hold", "paused", "unasked", "breaker", "retry-storm", "long-lease", "transient":
		return "wait"
	case "resolved", "succeeded", "complete", "success", "ready", "alive":
		return "good"
	}
	return ""
}

// icons are paths in a square of 16.
var icons = map[string]string{
	"office":     "M2 14V7l6-5 6 5v7h-4v-4H6v4z",
	"groups":     "M1 3h14v3H1zM1 8h10v2H1zM1 12h6v2H1z",
	"letters":    "M1 3h14v10H1zM1 4l7 5 7-5",
	"messages":   "M1 2h14v8H8l-4 4v-4H1zM4 5h8M4 7h5",
	"streams":    "M1 4c5 0 9 4 14 4M1 8h14M1 12c5 0 9-4 14-4",
	"retries":    "M13 5a6 6 0 1 0 1 4M14 1v4h-4M8 5v4l2 1",
	"policies":   "M8 1v14M3 15h10M2 4h12M2 4l-1 5h4L4 4M12 4l-1 5h4l-1-5",
	"settings":   "M1 4h6M11 4h4M7 2h4v4H7zM1 11h2M7 11h8M3 9h4v4H3z",
	"operations": "M3 8a5 5 0 0 1 9-3M12 1v4H8M13 8a5 5 0 0 1-9 3M4 15v-4h4",
	"queues":     "M1 4h4v8H1zM6 4h4v8H6zM11 4h4v8h-4z",
	"audit":      "M3 1h10v14H3zM5 5h6M5 8h6M5 11h4",
	"menu":       "M2 4h12M2 8h12M2 12h12",
	"bad":        "M8 1l7 13H1zM8 6v4M8 12v.5",
	"wait":       "M8 1a7 7 0 1 0 .01 0M8 4v4l3 2",
	"good":       "M2 8l4 4 8-8",
}

func icon(name string) template.HTML {
	const box = `<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">`
	return template.HTML(box + `<path d="` + icons[name] + `"/></svg>`) //nolint:gosec // a table
}
