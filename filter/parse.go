// Package filter is the text form of a [nixie.Filter]: it parses the text, writes it, and
// matches letters and messages.
//
//	queue:orders reason:timeout,dependency age:>1h first_failed:<2026-01-01 text:"no route"
//
// A filter is a list of terms key:value with spaces between them. All terms have to hold. A
// key with several values, joined by commas or given as several terms, holds for any of them.
// A term after - has not to hold. Words without a key, side by side, are searched for as one text.
// A value that contains a space, comma or quote stands in quotes. Within quotes \" and \\ are
// the only escapes.
//
//	id                                    whole IDs, or their last 6 to 31 digits
//	queue type key stream fingerprint     any values
//	family                                IDs of families, for the fingerprints of their groups; never after -
//	status state reason class cause       values of a closed list
//	signature text                        one value
//	error-type                            parts of the type of the newest failure
//	operation                             one whole ID, or its last 6 to 19 digits, which an office replaces
//	header                                NAME=VALUE of the message, both exactly
//	redrivable needs_review               yes, no, true or false
//	age                                   <, <=, > or >= and a duration: the time since the death
//	died due first_failed last_failed     a moment, after <, <=, >, >= or nothing
//	redrives attempts deliveries crashes  a number, after <, <=, >, >= or nothing
//
// A duration has the units ns us ms s m h d w. A moment is RFC 3339, a date (a whole day in
// UTC), now, now-2h or now+2h. The keys of the last three lines may be given twice, to bound
// them on both sides.
//
// Only the empty text is the zero filter, which matches everything. A term that would hold for
// everything is refused, as is a term that cannot be read.
package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/spelling"
)

// FamilyPrefix begins a fingerprint that stands for those of a family, until an office replaces it.
// No letter has such a fingerprint.
const FamilyPrefix = "family:"

// Bounds of the text of a filter. A text beyond one of them is an [Error].
const (
	MaxText  = 8 << 10 // bytes
	MaxTerms = 200     // key:value terms
)

// Parse reads the text of a filter. The package comment describes the language. A moment
// such as now-2h is relative to now. Errors are of type *[Error] and code
// [nixie.CodeInvalid].
func Parse(text string, now time.Time) (nixie.Filter, error) {
	if len(text) > MaxText {
		cut := MaxText
		for !utf8.RuneStart(text[cut]) && cut > MaxText-utf8.UTFMax {
			cut--
		}
		return nixie.Filter{}, errorf(text, cut, "the text has %d bytes, the limit is %d: use fewer terms", len(text), MaxText)
	}
	p := parser{text: text, now: now}
	for terms := 0; ; terms++ {
		p.skipSpace()
		if p.at == len(text) {
			return p.filter, nil
		}
		if terms == MaxTerms {
			return nixie.Filter{}, p.fail(p.at, "more than %d terms, the limit: join values of one key with commas", MaxTerms)
		}
		if err := p.next(); err != nil {
			return nixie.Filter{}, err
		}
	}
}

type parser struct {
	text   string
	now    time.Time
	at     int // byte offset of what comes next
	filter nixie.Filter
	once   []string // keys that were given and may not come again
	not    bool     // the term is after -
}

// next reads one term, or words up to the next term.
func (p *parser) next() error {
	if p.text[p.at] != '-' {
		t, err := p.term()
		if err == nil {
			err = p.apply(t)
		}
		return err
	}
	if p.at++; p.at == len(p.text) || isSpace(p.text[p.at]) {
		return p.fail(p.at-1, "- has no term: write -reason:timeout for what has another reason, or -word")
	}
	outer := *p
	p.filter, p.once, p.not = nixie.Filter{}, nil, true
	t, err := p.term()
	if err == nil {
		err = p.apply(t)
	}
	if err != nil {
		return err
	}
	inner := p.filter
	p.filter, p.once, p.not = outer.filter, outer.once, false
	p.filter.Not = append(p.filter.Not, inner)
	return nil
}

// term is one key with its values.
type term struct {
	key    string
	at     int // byte offset of the key
	values []value
}

type value struct {
	text string
	at   int // byte offset, of the quote if there is one
}

func (p *parser) fail(at int, format string, args ...any) error {
	return errorf(p.text, at, format, args...)
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (p *parser) skipSpace() {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *parser) term() (term, error) {
	t := term{at: p.at}
	p.skipWord()
	t.key = p.text[t.at:p.at]
	switch {
	case strings.HasPrefix(t.key, `"`) || p.at == len(p.text) || p.text[p.at] != ':':
		p.at = t.at
		return p.words()
	case !slices.Contains(Keys(), t.key):
		known := cmp.Or(didYouMean(t.key, Keys()), ": the keys are "+strings.Join(Keys(), ", "))
		return t, p.fail(t.at, "unknown key %q%s; quote what has a colon to search for it", clip(t.key, 40), known)
	}
	for {
		p.at++ // the colon or comma
		v, err := p.value(t.key)
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
		switch {
		case p.at == len(p.text) || isSpace(p.text[p.at]):
			return t, nil
		case p.text[p.at] != ',':
			return t, p.fail(p.at, "a quote in the middle of a value: put the whole value in quotes and write \\\" for a quote")
		}
	}
}

func (p *parser) skipWord() {
	for p.at < len(p.text) && p.text[p.at] != ':' && !isSpace(p.text[p.at]) {
		p.at++
	}
}

// words reads words without a key up to the next term, as the value of text.
func (p *parser) words() (term, error) {
	t := term{key: "text", at: p.at}
	var text []string
	for end := p.at; ; {
		at := p.at
		switch p.skipWord(); {
		case p.text[at] == '"':
			p.at = at
			v, err := p.quoted()
			if err != nil {
				return t, err
			}
			text = append(text, v.text)
		case p.at < len(p.text) && p.text[p.at] == ':' || p.text[at] == '-' && end != at: // of the next term
			p.at = end
			t.values = []value{{strings.Join(text, " "), t.at}}
			return t, nil
		default:
			word := p.text[at:p.at]
			if err := p.searchable(at, word); err != nil {
				return t, err
			}
			text = append(text, word)
		}
		end = p.at
		if p.skipSpace(); p.at == len(p.text) || p.not {
			t.values = []value{{strings.Join(text, " "), t.at}}
			return t, nil
		}
	}
}

// searchable refuses a word that was meant as a term.
func (p *parser) searchable(at int, word string) error {
	key, value := word, ""
	if i := strings.IndexAny(word, "=<>"); i >= 0 {
		key, value = word[:i], strings.TrimLeft(word[i:], "=")
	}
	switch {
	case !utf8.ValidString(word):
		return p.fail(at, "the word is not valid UTF-8")
	case slices.Contains(Keys(), key):
		return p.fail(at, "%q has no colon: write %s:%s, or text:%s to search for it",
			clip(word, 40), key, cmp.Or(value, "…"), quote(clip(word, 40)))
	}
	return nil
}

// value reads up to the space, comma or end after one value.
func (p *parser) value(key string) (value, error) {
	v := value{at: p.at}
	if p.at < len(p.text) && p.text[p.at] == '"' {
		return p.quoted()
	}
	for p.at < len(p.text) && !isSpace(p.text[p.at]) && p.text[p.at] != ',' && p.text[p.at] != '"' {
		p.at++
	}
	v.text = p.text[v.at:p.at]
	if v.text == "" {
		return v, p.fail(v.at, "%s has no value here: write one, or \"\" for the empty text", key)
	}
	if !utf8.ValidString(v.text) {
		return v, p.fail(v.at, "the value of %s is not valid UTF-8", key)
	}
	return v, nil
}

func (p *parser) quoted() (value, error) {
	v := value{at: p.at}
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			v.text = b.String()
			if !utf8.ValidString(v.text) {
				return v, p.fail(v.at, "the quoted value is not valid UTF-8")
			}
			if p.at < len(p.text) && p.text[p.at] != ',' && !isSpace(p.text[p.at]) {
				return v, p.fail(p.at, "text right after a closing quote: put a space or comma between them, or write \\\" for a quote")
			}
			return v, nil
		case '\\':
			p.at++
			if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				return v, p.fail(p.at-1, "a backslash in quotes is followed by \" or \\ only: write \\\\ for a backslash")
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return v, p.fail(v.at, "the quote that begins here is not closed")
}

// Keys lists the keys in the order in which [Text] writes them.
func Keys() []string {
	return []string{
		"id", "queue", "type", "key", "stream", "status", "state", "reason", "class", "cause",
		"fingerprint", "family", "signature", "text", "error-type", "redrivable", "needs_review",
		"age", "died", "due", "first_failed", "last_failed", "redrives", "attempts", "deliveries", "crashes", "operation", "header",
	}
}

func (p *parser) apply(t term) error {
	f := &p.filter
	switch t.key {
	case "id":
		return p.ids(t)
	case "queue":
		addTexts(&f.Queues, t)
	case "type":
		addTexts(&f.Types, t)
	case "key":
		addTexts(&f.Keys, t)
	case "stream":
		addTexts(&f.Streams, t)
	case "error-type":
		for _, v := range t.values {
			if v.text == "" {
				return p.fail(v.at, "error-type is empty, which would hold for everything: give a text or leave the term out")
			}
		}
		addTexts(&f.ErrorTypes, t)
	case "fingerprint":
		addTexts(&f.Fingerprints, t)
	case "family":
		if p.not { // one that is not resolved would leave out nothing
			return p.fail(t.at, "a family cannot be left out: name the fingerprints of its groups, as in -fingerprint:v3-…")
		}
		for _, v := range t.values {
			f.Fingerprints = append(f.Fingerprints, FamilyPrefix+v.text)
		}
	case "status":
		return addClosed(p, &f.Statuses, t, nixie.Statuses())
	case "state":
		return addClosed(p, &f.States, t, nixie.States())
	case "reason":
		return addClosed(p, &f.Reasons, t, nixie.Reasons())
	case "class":
		return addClosed(p, &f.Classes, t, nixie.Classes())
	case "cause":
		return addClosed(p, &f.Causes, t, nixie.Causes())
	case "redrives":
		return p.number(&f.Redrives, t)
	case "attempts":
		return p.number(&f.Attempts, t)
	case "deliveries":
		return p.number(&f.Deliveries, t)
	case "crashes":
		return p.number(&f.Crashes, t)
	case "died":
		return p.moment(&f.Died, t)
	case "due":
		return p.moment(&f.Due, t)
	case "first_failed":
		return p.moment(&f.FirstFailed, t)
	case "last_failed":
		return p.moment(&f.LastFailed, t)
	case "header":
		return p.headers(t)
	case "age":
		return p.duration(&f.Age, t)
	default:
		return p.applyOnce(t)
	}
	return nil
}

// applyOnce reads the keys that take one value and may be given once.
func (p *parser) applyOnce(t term) error {
	f := &p.filter
	v, err := p.single(t)
	if err != nil {
		return err
	}
	if slices.Contains(p.once, t.key) {
		return p.fail(t.at, "%s is given twice: it takes one value", t.key)
	}
	p.once = append(p.once, t.key)
	switch t.key {
	case "redrivable":
		f.Redrivable, err = p.yesNo(t.key, v)
		return err
	case "needs_review":
		f.NeedsReview, err = p.yesNo(t.key, v)
		return err
	case "operation":
		f.Operation, err = p.operation(v)
		return err
	}
	if v.text == "" {
		return p.fail(v.at, "%s is empty, which would hold for everything: give a text or leave the term out", t.key)
	}
	switch t.key {
	case "signature":
		f.Signature = v.text
	case "text":
		f.Text = v.text
	default:
		return p.fail(t.at, "the key %s cannot be read", t.key)
	}
	return nil
}

func (p *parser) single(t term) (value, error) {
	if len(t.values) > 1 {
		return value{}, p.fail(t.values[1].at, "%s takes one value: quote it if the comma belongs to it", t.key)
	}
	return t.values[0], nil
}

func addTexts(to *[]string, t term) {
	for _, v := range t.values {
		*to = append(*to, v.text)
	}
}

func addClosed[T ~string](p *parser, to *[]T, t term, allowed []T) error {
	for _, v := range t.values {
		if !slices.Contains(allowed, T(v.text)) {
			names := make([]string, len(allowed))
			for i, a := range allowed {
				names[i] = string(a)
			}
			return p.fail(v.at, "%q is no %s%s: one of %s", clip(v.text, 40), t.key, didYouMean(v.text, names), strings.Join(names, ", "))
		}
		*to = append(*to, T(v.text))
	}
	return nil
}

// didYouMean suggests the name nearest to what was written, if one is near.
func didYouMean(written string, names []string) string {
	best, nearest := 3, ""
	for _, name := range names {
		if d := spelling.Slips(strings.ToLower(clip(written, 40)), name); d < best && d < len(name) {
			best, nearest = d, name
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", nearest)
}
