package filter

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// A filter accepts moments from the start of minYear to the start of maxYear. Every store can
// keep them as nanoseconds since 1970 in 64 bits.
const (
	minYear = 1970
	maxYear = 2262
)

const day = 24 * time.Hour

// comparison splits the operator off a value; the empty one means "equal".
func comparison(v value) (op string, rest value) {
	for _, op := range [...]string{"<=", ">=", "<", ">"} {
		if text, ok := strings.CutPrefix(v.text, op); ok {
			return op, value{text, v.at + len(op)}
		}
	}
	return "", v
}

// bounded refuses a second bound on a side that has one.
func (p *parser) bounded(t term, op string, low, high bool) error {
	switch {
	case low && op != "<" && op != "<=":
		return p.fail(t.at, "%s has a lower bound already: give one", t.key)
	case high && op != ">" && op != ">=":
		return p.fail(t.at, "%s has an upper bound already: give one", t.key)
	}
	return nil
}

func (p *parser) number(r *nixie.Range, t term) error {
	v, err := p.single(t)
	if err != nil {
		return err
	}
	op, v := comparison(v)
	if err := p.bounded(t, op, r.Min != nil, r.Max != nil); err != nil {
		return err
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return p.fail(v.at, "%q has too many digits: give a number of at most %d", clip(v.text, 40), math.MaxInt64)
	case err != nil:
		return p.fail(v.at, "%q is no whole number: write %s:3 or %s:>0 for example", clip(v.text, 40), t.key, t.key)
	}
	if op == ">" && n == math.MaxInt64 || op == "<" && n == math.MinInt64 {
		return p.fail(v.at, "no number is beyond %d", n)
	}
	low, high := n, n // two variables: the ends must not share one address
	switch op {
	case ">":
		low++
	case "<":
		high--
	}
	if op != "<" && op != "<=" {
		r.Min = &low
	}
	if op != ">" && op != ">=" {
		r.Max = &high
	}
	return nil
}

func (p *parser) duration(s *nixie.Durations, t term) error {
	v, err := p.single(t)
	if err != nil {
		return err
	}
	op, v := comparison(v)
	if op == "" {
		return p.fail(v.at, "%s needs a comparison: write %s:>1h for older or %s:<1h for younger", t.key, t.key, t.key)
	}
	if err := p.bounded(t, op, s.Min != 0, s.Max != 0); err != nil {
		return err
	}
	d, err := ParseDuration(v.text)
	if err != nil {
		return p.fail(v.at, "%v", err)
	}
	switch {
	case op == ">" && d == math.MaxInt64:
		return p.fail(v.at, "no duration is longer than %s", d)
	case op == ">":
		s.Min = d + 1
	case op == ">=" && d == 0:
		return p.fail(v.at, "%s:>=0 holds for everything: leave the term out", t.key)
	case op == ">=":
		s.Min = d
	case op == "<" && d > 1:
		s.Max = d - 1
	case op == "<=" && d > 0:
		s.Max = d
	default: // an upper bound of 0 would read as none
		return p.fail(v.at, "nothing is that young: give %s a longer duration", t.key)
	}
	return nil
}

// ParseDuration reads durations such as 90s, 1h30m, 1.5d, 2w or 0. Errors are of
// [nixie.CodeInvalid].
func ParseDuration(text string) (time.Duration, error) {
	bad := nixie.Errorf(nixie.CodeInvalid,
		"%q is no duration: write a number and a unit of ns us ms s m h d w, 90m or 1d12h for example", clip(text, 40))
	switch text {
	case "":
		return 0, bad
	case "0":
		return 0, nil
	}
	sum := time.Duration(0)
	for rest := text; rest != ""; {
		digits := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if digits <= 0 {
			return 0, bad
		}
		end := strings.IndexAny(rest[digits:], "0123456789.")
		if end < 0 {
			end = len(rest) - digits
		}
		number, unit := rest[:digits], rest[digits:digits+end]
		rest = rest[digits+end:]
		times := time.Duration(1)
		switch unit {
		case "d":
			unit, times = "h", 24
		case "w":
			unit, times = "h", 7*24
		}
		d, err := time.ParseDuration(number + unit)
		if err != nil {
			if _, few := time.ParseDuration("1" + unit); few != nil || strings.Count(number, ".") > 1 || number == "." {
				return 0, bad
			}
			d = math.MaxInt64 // and then some
		}
		if err != nil || d > math.MaxInt64/times || sum > math.MaxInt64-d*times {
			return 0, nixie.Errorf(nixie.CodeInvalid, "%q is too long: the longest duration is about 292 years", clip(text, 40))
		}
		sum += d * times
	}
	return sum, nil
}

func (p *parser) moment(b *nixie.Times, t term) error {
	v, err := p.single(t)
	if err != nil {
		return err
	}
	op, v := comparison(v)
	if p.not && op == "" {
		return p.fail(v.at, "-%s needs a comparison: write -%[1]s:<%[2]s or -%[1]s:>%[2]s", t.key, clip(v.text, 40))
	}
	if err := p.bounded(t, op, !b.After.IsZero(), !b.Before.IsZero()); err != nil {
		return err
	}
	from, till, err := p.parseMoment(v)
	if err != nil {
		return err
	}
	switch op {
	case ">":
		b.After = till
	case ">=":
		b.After = from
	case "<":
		b.Before = from
	case "<=":
		b.Before = till
	default:
		b.After, b.Before = from, till
	}
	for _, end := range [...]time.Time{b.After, b.Before} {
		if !end.IsZero() && (end.Year() < minYear || end.After(time.Date(maxYear, 1, 1, 0, 0, 0, 0, time.UTC))) {
			return p.fail(v.at, "%q is out of range: give a moment from %d up to the start of %d", clip(v.text, 40), minYear, maxYear)
		}
	}
	return nil
}

// parseMoment reads a moment as an interval without its end: a date is a day long, anything
// else a nanosecond.
func (p *parser) parseMoment(v value) (from, till time.Time, err error) {
	length := time.Nanosecond
	if away, ok := strings.CutPrefix(v.text, "now"); ok {
		from = p.now
		if away != "" {
			d, err := ParseDuration(away[1:])
			if err != nil || away[0] != '-' && away[0] != '+' {
				return from, from, p.fail(v.at,
					"%q is no moment: write now-2h for two hours ago, now+2h for two hours from now", clip(v.text, 40))
			}
			if away[0] == '-' {
				d = -d
			}
			from = from.Add(d)
		}
	} else if from, err = time.Parse(time.DateOnly, v.text); err == nil {
		length = day
	} else if from, err = time.Parse(time.RFC3339Nano, v.text); err != nil {
		return from, from, p.fail(v.at, "%q is no moment: write 2026-01-31, 2026-01-31T10:00:00Z or now-2h", clip(v.text, 40))
	}
	from = from.UTC().Round(0)
	return from, from.Add(length), nil
}

func (p *parser) yesNo(key string, v value) (*bool, error) {
	var b bool
	switch v.text {
	case "yes", "true":
		b = true
	case "no", "false":
	default:
		return nil, p.fail(v.at, "%q is neither yes nor no: write %s:yes or %s:no", clip(v.text, 40), key, key)
	}
	return &b, nil
}

func (p *parser) ids(t term) error {
	for _, v := range t.values {
		if ending, is := Ending(v.text); is {
			p.filter.Endings = append(p.filter.Endings, ending)
			continue
		}
		id, err := p.id(v)
		if err != nil {
			return err
		}
		p.filter.IDs = append(p.filter.IDs, id)
	}
	return nil
}

// Ending reads the last 6 to 31 digits of an ID as [nixie.Filter] wants them. It also takes
// capitals and dashes.
func Ending(text string) (ending string, is bool) {
	ending = strings.ToLower(strings.ReplaceAll(text, "-", ""))
	return ending, len(ending) >= nixie.MinEnding && len(ending) < 32 && strings.Trim(ending, "0123456789abcdef") == ""
}

// maxOperationEnding is the most digits of an ending that stands for an operation. The version of
// an ID is before them, so that no ID has the form of such an ending.
const maxOperationEnding = 19

// operation reads the ID of an operation. The end of one becomes an ID that no operation has: a 1
// and the digits, after zeros.
func (p *parser) operation(v value) (nixie.ID, error) {
	ending, is := Ending(v.text)
	switch {
	case !is:
		return p.id(v)
	case len(ending) > maxOperationEnding:
		return nixie.ID{}, p.fail(v.at, "operation has %d digits: give the whole ID, or its last %d to %d digits",
			len(ending), nixie.MinEnding, maxOperationEnding)
	case p.not: // one that is not resolved would leave out nothing
		return nixie.ID{}, p.fail(v.at, "-operation needs the whole ID: nixie operation show %s has it", ending)
	}
	var id nixie.ID
	_, err := hex.Decode(id[:], []byte(strings.Repeat("0", 31-len(ending))+"1"+ending))
	return id, err
}

// operationEnding returns the last digits of an operation's ID that an ID stands for, until an
// office replaces it. [Parse] makes such an ID of operation:00e3f402. No operation has one, so a
// filter that was not resolved matches nothing.
func operationEnding(id nixie.ID) (ending string, is bool) {
	one, ending, _ := strings.Cut(strings.TrimLeft(hex.EncodeToString(id[:]), "0"), "1")
	return ending, one == "" && len(ending) >= nixie.MinEnding && len(ending) <= maxOperationEnding
}

// headers reads values NAME=VALUE.
func (p *parser) headers(t term) error {
	for _, v := range t.values {
		name, value, is := strings.Cut(v.text, "=")
		if !is || name == "" {
			return p.fail(v.at, "header is %q: write header:NAME=VALUE, all of it in quotes if it has a space", clip(v.text, 40))
		}
		p.filter.Headers = append(p.filter.Headers, nixie.Header{Name: name, Value: value})
	}
	return nil
}

func (p *parser) id(v value) (nixie.ID, error) {
	id, err := nixie.ParseID(v.text)
	if err != nil {
		return nixie.ID{}, p.fail(v.at, "%q is not an ID: give the whole one, or its last %d digits or more",
			clip(v.text, 40), nixie.MinEnding)
	}
	if id.IsZero() {
		return nixie.ID{}, p.fail(v.at, "%s is the zero ID, which nothing has", v.text)
	}
	return id, nil
}
