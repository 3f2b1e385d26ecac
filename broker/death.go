package broker

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Death is what the headers of a record say of its end, whoever wrote them. What
// they do not say is zero.
type Death struct {
	Format    string // who wrote them, one of [Formats]; empty: nobody that is known
	Channel   string // where it died
	Partition int32  // −1: not said
	Offset    int64  // −1: not said
	Timestamp time.Time

	Letter      nixie.ID
	Class       nixie.Class
	Reason      nixie.Reason
	ReasonText  string // the reason in the words of the format
	Exception   string
	Text        string
	Stack       string
	ErrorCode   *int
	Attempts    int
	Node        string
	FirstFailed time.Time
	LastFailed  time.Time
	Redrives    int
	Causes      []string // errors below Exception as the stack names them, the root last
	Context     []string // what else the format says
}

// part is what a header is about.
type part byte

const (
	aside part = iota // of the format, and said elsewhere or of no use to anybody
	channel
	address // a URL that ends in the channel
	partition
	offset
	timestamp
	letter
	class
	reason
	said
	exception
	cause // exception below exception
	text
	poisoned // text, and after a panic its stack
	stack
	errorCode
	attempts
	nextAttempt // one more than there were
	node
	firstFailed
	lastFailed
	redrives
)

// why reports whether a part only says why.
func (p part) why() bool {
	switch p {
	case class, reason, said, exception, cause, text, poisoned, stack, errorCode, attempts, node:
		return true
	}
	return false
}

// format is how one kind of program says why a record died.
type format struct {
	name     string
	speaks   []string // one of these is there if it speaks; in lower case like all names here
	prefixes []string // of its headers
	parts    map[string]part
	binary   bool   // numbers are four to eight bytes, the highest first
	wrapper  string // exception that says no more than that there was one below it
}

// Formats lists the formats that are known, by name.
func Formats() []string {
	var names []string
	for _, f := range formats {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

// ReadDeath reads headers, and returns those that are not of the format which tells
// of the death: the sender's. Of formats that both seem to speak the one counts that
// is not read from what a redrive leaves on a record.
func ReadDeath(headers []RecordHeader) (Death, []RecordHeader) { return readDeath(headers, false) }

// readDeath leaves out what a way back has no use for, if it is for that: why.
func readDeath(headers []RecordHeader, back bool) (Death, []RecordHeader) {
	d := Death{Partition: -1, Offset: -1}
	rest := headers
	for _, f := range formats {
		if f.found(headers) {
			rest = f.read(headers, &d, back)
			break
		}
	}
	d.Redrives = max(d.Redrives, count(headers, HeaderRedriveCount))
	if d.FirstFailed.IsZero() {
		d.FirstFailed = moment(headers, HeaderFirstFailureAt)
	}
	return d, theirs(rest)
}

func (f *format) found(headers []RecordHeader) bool {
	return slices.ContainsFunc(headers, func(h RecordHeader) bool { return slices.Contains(f.speaks, strings.ToLower(h.Name)) })
}

// read takes the headers of the format; of several with one name the last counts.
func (f *format) read(headers []RecordHeader, d *Death, back bool) (rest []RecordHeader) {
	d.Format = f.name
	for _, h := range headers {
		name := strings.ToLower(h.Name)
		what, known := f.parts[name]
		switch {
		case known && back && what.why():
		case known:
			f.set(d, what, h.Value)
		case !f.owns(name):
			rest = append(rest, h)
		case Ours(name), back:
		case len(d.Context) < nixie.MaxContext:
			d.Context = append(d.Context, clean(h.Name+": "+f.shown(name, h.Value), maxCircumstance))
		}
	}
	return rest
}

const maxCircumstance = 512

func (f *format) owns(name string) bool {
	return slices.ContainsFunc(f.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// shown is a value for people: a text of four to eight bytes looks like a number, so
// that only the name of the header says which it is.
func (f *format) shown(name string, value []byte) string {
	numeric := slices.ContainsFunc(numbersEnd, func(end string) bool { return strings.HasSuffix(name, end) })
	if n, ok := f.number(value); ok && numeric {
		return strconv.FormatInt(n, 10)
	}
	return string(value)
}

// numbersEnd are how the names of headers end whose values are numbers.
var numbersEnd = []string{"partition", "offset", "timestamp", "attempt", "attempts", "count"}

// number reads a number as the format writes it, or as a text of digits.
func (f *format) number(value []byte) (int64, bool) {
	if f.binary {
		switch n := len(value); {
		case n == 4:
			return int64(int32(binary.BigEndian.Uint32(value))), true
		case n > 4 && n <= 8: // a time has as many as it needs
			var whole [8]byte
			copy(whole[8-n:], value)
			return int64(binary.BigEndian.Uint64(whole[:])), true
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// moment reads a time: milliseconds since 1970, or as a text of RFC 3339.
func (f *format) moment(value []byte) time.Time {
	if n, ok := f.number(value); ok {
		if n <= 0 {
			return time.Time{}
		}
		return sane(time.UnixMilli(n))
	}
	if at, err := time.Parse(time.RFC3339Nano, string(value)); err == nil {
		return sane(at)
	}
	return time.Time{}
}

func (f *format) set(d *Death, what part, value []byte) {
	said := func(most int) string { return clean(string(value), most) }
	switch what {
	case channel:
		d.Channel = nameOf(string(value))
	case address:
		path, _, _ := strings.Cut(string(value), "?")
		d.Channel = nameOf(path[strings.LastIndexAny(path, "/:")+1:])
	case partition:
		if n, ok := f.number(value); ok && n >= 0 {
			d.Partition = int32(min(n, math.MaxInt32))
		}
	case offset:
		if n, ok := f.number(value); ok && n >= 0 {
			d.Offset = n
		}
	case timestamp:
		d.Timestamp = f.moment(value)
	case letter:
		if id, err := nixie.ParseID(string(value)); err == nil {
			d.Letter = id
		}
	case class:
		if c := nixie.Class(value); slices.Contains(nixie.Classes(), c) {
			d.Class = c
		}
	case reason:
		if r := nixie.Reason(value); slices.Contains(nixie.Reasons(), r) {
			d.Reason = r
		}
	case cause:
		d.Context = append(d.Context, "caused by "+said(maxCircumstance))
		if d.Exception == f.wrapper {
			d.Exception = said(nixie.MaxName)
		}
	case exception:
		d.Exception = said(nixie.MaxName)
	case text:
		d.Text = said(nixie.MaxFailureText)
	case poisoned:
		d.poisoned(string(value))
	case stack:
		d.Causes = causes(string(value))
		d.Stack = said(nixie.MaxStack)
	case node:
		d.Node = said(nixie.MaxName)
	case attempts:
		d.Attempts = int(f.bounded(value, maxCount))
	case nextAttempt:
		d.Attempts = int(max(f.bounded(value, maxCount)-1, 0))
	case redrives:
		d.Redrives = int(f.bounded(value, maxCount))
	case firstFailed:
		d.FirstFailed = f.moment(value)
	case lastFailed:
		d.LastFailed = f.moment(value)
	default:
		d.more(what, said(nixie.MaxName))
	}
}

func (d *Death) more(what part, text string) {
	switch what {
	case said:
		d.ReasonText = text
	case errorCode:
		if n, err := strconv.Atoi(text); err == nil && n >= -1<<31 && n < 1<<31 {
			d.ErrorCode = &n
		}
	}
}

// poisoned takes the error of a handler apart: after a panic Watermill's Recoverer
// puts value and stack into one text.
func (d *Death) poisoned(said string) {
	outer, rest, _ := strings.Cut(said, "panic occurred: ")
	value, stack, panicked := strings.Cut(rest, ", stacktrace: \n")
	if panicked {
		if plain, err := strconv.Unquote(value); err == nil {
			value = plain
		}
		said, d.Reason = outer+"panic: "+value, nixie.ReasonPanic
		rest, where := policy.PanicStack(stack)
		d.Stack = clean(rest, nixie.MaxStack)
		if where != "" {
			d.Context = append(d.Context, clean("panicked in "+where, maxCircumstance))
		}
	}
	d.Text = clean(said, nixie.MaxFailureText)
}

// causes are the errors below the first one of a Java stack, the root last.
func causes(stack string) (list []string) {
	for line := range strings.Lines(stack) {
		if said, ok := strings.CutPrefix(line, "Caused by: "); ok {
			list = append(list, clean(strings.TrimSpace(said), maxCircumstance))
		}
	}
	return list[max(len(list)-nixie.MaxContext, 0):]
}

// nameOf is a name, or nothing if it cannot be one.
func nameOf(text string) string {
	if nixie.CheckName("channel", text) != nil {
		return ""
	}
	return text
}

// bounded reads a number from 0 to most; anything else is 0.
func (f *format) bounded(value []byte, most int64) int64 {
	n, ok := f.number(value)
	if !ok || n < 0 {
		return 0
	}
	return min(n, most)
}

// clean makes text of foreign making fit to be kept.
func clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	return cut(text, most)
}
