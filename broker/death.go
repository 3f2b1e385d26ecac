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

// Death holds what the headers of a dead record tell about its death. A fact that they do not tell
// is zero.
type Death struct {
	Format    string // name of their format, one of [Formats]; empty: unknown
	Channel   string // where it died
	Partition int32  // −1: unknown
	Offset    int64  // −1: unknown
	Timestamp time.Time

	Letter      nixie.ID
	Class       nixie.Class
	Reason      nixie.Reason
	ReasonText  string // the reason in the words of the format
	Exception   string
	Text        string
	Stack       string
	ErrorCode   *int
	Group       string // its name by hand
	Attempts    int
	Node        string
	FirstFailed time.Time
	LastFailed  time.Time
	Redrives    int
	Causes      []string // errors below Exception as the stack names them, the root last
	Context     []string // other facts that the format tells
}

// part tells which fact a header holds.
type part byte

const (
	ignored part = iota // another header tells it, or it helps no reader
	channel
	address // a URL that ends in the channel
	partition
	offset
	timestamp
	letter
	class
	reason
	reasonText
	exception
	cause // exception below exception
	text
	poisonText // text, and after a panic its stack
	stack
	errorCode
	groupName
	attempts
	nextAttempt // one more than the attempts
	node
	firstFailed
	lastFailed
	redrives
)

// explains reports whether a part only tells why the record died.
func (p part) explains() bool {
	switch p {
	case class, reason, reasonText, exception, cause, text, poisonText, stack, errorCode, groupName, attempts, node:
		return true
	}
	return false
}

// format describes the headers of one program that writes dead records.
type format struct {
	name     string
	markers  []string // at least one of these is on each record; in lower case, like all names here
	prefixes []string // of its headers
	parts    map[string]part
	binary   bool   // numbers are four to eight bytes, the highest first
	wrapper  string // exception that only wraps another one
}

// Formats lists the names of the known formats.
func Formats() []string {
	var names []string
	for _, f := range formats {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

// ReadDeath reads the headers of a dead record. It returns the death, and the headers of the
// sender, which are not of that format. A redriven record may match several formats: the first one
// in [formats] counts.
func ReadDeath(headers []RecordHeader) (Death, []RecordHeader) { return readDeath(headers, false) }

// readDeath skips the headers that only explain the death if back is set: a redrive does not need
// them.
func readDeath(headers []RecordHeader, back bool) (Death, []RecordHeader) {
	d := Death{Partition: -1, Offset: -1}
	rest := headers
	for _, f := range formats {
		if f.matches(headers) {
			rest = f.read(headers, &d, back)
			break
		}
	}
	d.Redrives = max(d.Redrives, headerCount(headers, HeaderRedriveCount))
	if d.FirstFailed.IsZero() {
		d.FirstFailed = headerTime(headers, HeaderFirstFailureAt)
	}
	return d, senderHeaders(rest)
}

func (f *format) matches(headers []RecordHeader) bool {
	return slices.ContainsFunc(headers, func(h RecordHeader) bool { return slices.Contains(f.markers, strings.ToLower(h.Name)) })
}

// read takes the headers of the format. If a name repeats, the last header counts.
func (f *format) read(headers []RecordHeader, d *Death, back bool) (rest []RecordHeader) {
	d.Format = f.name
	for _, h := range headers {
		name := strings.ToLower(h.Name)
		what, known := f.parts[name]
		switch {
		case known && back && what.explains():
		case known:
			f.set(d, what, h.Value)
		case !f.ownsHeader(name):
			rest = append(rest, h)
		case Ours(name), back:
		case len(d.Context) < nixie.MaxContext:
			d.Context = append(d.Context, clean(h.Name+": "+f.display(name, h.Value), maxCircumstance))
		}
	}
	return rest
}

const maxCircumstance = 512

func (f *format) ownsHeader(name string) bool {
	return slices.ContainsFunc(f.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// display formats a value for people. Any four to eight bytes could be a number, so only the name
// of the header decides.
func (f *format) display(name string, value []byte) string {
	numeric := slices.ContainsFunc(numbersEnd, func(end string) bool { return strings.HasSuffix(name, end) })
	if n, ok := f.number(value); ok && numeric {
		return strconv.FormatInt(n, 10)
	}
	return string(value)
}

// numbersEnd end the names of headers whose values are numbers.
var numbersEnd = []string{"partition", "offset", "timestamp", "attempt", "attempts", "count"}

// number reads a number as the format writes it, or as decimal digits.
func (f *format) number(value []byte) (int64, bool) {
	if f.binary {
		switch n := len(value); {
		case n == 4:
			return int64(int32(binary.BigEndian.Uint32(value))), true
		case n > 4 && n <= 8: // times have as many bytes as they need
			var whole [8]byte
			copy(whole[8-n:], value)
			return int64(binary.BigEndian.Uint64(whole[:])), true
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// moment reads a time: milliseconds since 1970, or RFC 3339.
func (f *format) moment(value []byte) time.Time {
	if n, ok := f.number(value); ok {
		if n <= 0 {
			return time.Time{}
		}
		return clampTime(time.UnixMilli(n))
	}
	if at, err := time.Parse(time.RFC3339Nano, string(value)); err == nil {
		return clampTime(at)
	}
	return time.Time{}
}

func (f *format) set(d *Death, what part, value []byte) {
	said := func(most int) string { return clean(string(value), most) }
	switch what {
	case channel:
		d.Channel = channelName(string(value))
	case address:
		path, _, _ := strings.Cut(string(value), "?")
		d.Channel = channelName(path[strings.LastIndexAny(path, "/:")+1:])
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
	case poisonText:
		d.setPoisonText(string(value))
	case stack:
		d.Causes = causes(string(value))
		d.Stack = said(nixie.MaxStack)
	case node:
		d.Node = said(nixie.MaxName)
	case groupName:
		d.Group = said(nixie.MaxName)
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
		d.setOther(what, said(nixie.MaxName))
	}
}

func (d *Death) setOther(what part, text string) {
	switch what {
	case reasonText:
		d.ReasonText = text
	case errorCode:
		if n, err := strconv.Atoi(text); err == nil && n >= -1<<31 && n < 1<<31 {
			d.ErrorCode = &n
		}
	}
}

// setPoisonText splits the error of a handler: after a panic, Watermill's Recoverer puts value and
// stack into one text.
func (d *Death) setPoisonText(said string) {
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

// causes returns the errors below the first one of a stack of Java or .NET, the root last.
func causes(stack string) (list []string) {
	for line := range strings.Lines(stack) {
		said, ok := strings.CutPrefix(line, "Caused by: ")
		if !ok {
			_, said, ok = strings.Cut(line, "---> ")
		}
		if ok {
			list = append(list, clean(strings.TrimSpace(said), maxCircumstance))
		}
	}
	return list[max(len(list)-nixie.MaxContext, 0):]
}

// channelName returns the text if it can be the name of a channel, else "".
func channelName(text string) string {
	if nixie.CheckName("channel", text) != nil {
		return ""
	}
	return text
}

// bounded reads a number from 0 to most; it returns 0 for anything else.
func (f *format) bounded(value []byte, most int64) int64 {
	n, ok := f.number(value)
	if !ok || n < 0 {
		return 0
	}
	return min(n, most)
}

// clean makes a text from outside valid and short enough to store.
func clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	return cut(text, most)
}
