package policy

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// String describes the backoff in words.
func (b Backoff) String() string {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return "no waiting"
	}
	most := "without cap"
	if b.Cap >= 0 {
		most = "up to " + short(b.Cap)
	}
	words := b.formulaWords() + " " + most
	if b.Min > MinSpacing {
		words += ", at least " + short(b.Min)
	}
	return words + ", " + b.jitterWords()
}

func (b Backoff) formulaWords() string {
	switch b.Formula {
	case Fixed:
		return short(b.Base)
	case Linear:
		return short(b.Base) + " +" + short(cmp.Or(b.Step, b.Base))
	case Fibonacci:
		return short(b.Base) + " ×1, 1, 2, 3, 5 …"
	case List:
		return listWords(b.Delays)
	case Custom:
		return "a function"
	}
	return short(b.Base) + " ×" + number(b.Factor)
}

// listWords shows the first delays of a list.
func listWords(delays []time.Duration) string {
	const shown = 8
	var words []string
	for _, d := range delays[:min(len(delays), shown)] {
		words = append(words, short(d))
	}
	if len(delays) > shown {
		words = append(words, strconv.Itoa(len(delays)-shown)+" more")
	}
	return strings.Join(words, ", ") + ", then"
}

func (b Backoff) jitterWords() string {
	switch b.Jitter {
	case JitterNone:
		return "no jitter"
	case JitterProportional:
		return "±" + number(100*b.Fraction) + " % jitter"
	case JitterAdditive:
		return short(b.From) + " to " + short(b.To) + " more as jitter"
	}
	return string(b.Jitter) + " jitter"
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// MaxBackoffText limits the bytes that [ParseBackoff] reads.
const MaxBackoffText = 4 << 10

// ParseBackoff reads a backoff from a command line: a formula, then settings, each a name, "="
// and a value.
//
//	exponential base=1s factor=2 cap=15m jitter=full
//	linear base=1m step=1m cap=15m jitter=none
//	list delays=5s,30s,2m cap=10m jitter=proportional fraction=0.2
//	fixed base=3s jitter=additive from=20ms to=50ms
//
// A duration instead of the formula means exponential with that base: 30s cap=1h. A setting that
// the text leaves out keeps its zero value, which means the default or the inherited value. The
// text base=0 means no waiting, and cap=none means no cap. No text can give the formula custom, as
// it is a function. Errors have [nixie.CodeInvalid] and name the setting.
func ParseBackoff(text string) (Backoff, error) {
	var b Backoff
	if len(text) > MaxBackoffText {
		return b, nixie.Errorf(nixie.CodeInvalid, "backoff has %d bytes, the limit is %d: shorten it", len(text), MaxBackoffText)
	}
	for i, word := range strings.Fields(text) {
		name, value, isSetting := strings.Cut(word, "=")
		if !isSetting {
			if i > 0 || Formula(word) == Custom {
				return Backoff{}, nixie.Errorf(nixie.CodeInvalid, "backoff has %q: "+
					"give a formula first (exponential, linear, fixed, fibonacci or list), then settings such as base=1s", word)
			}
			if err := b.begin(word); err != nil {
				return Backoff{}, err
			}
			continue
		}
		if err := b.set(name, value); err != nil {
			return Backoff{}, err
		}
	}
	if err := b.or(defaultBackoff()).check(); err != nil {
		return Backoff{}, err
	}
	return b, nil
}

// begin reads the first word: a formula, or the base of the default formula.
func (b *Backoff) begin(word string) (err error) {
	if strings.ContainsAny(word[:1], "0123456789.-+") {
		b.Base, err = duration("base", word, "0")
		return err
	}
	b.Formula = Formula(word)
	return nil
}

// set reads one setting.
func (b *Backoff) set(name, value string) (err error) {
	switch name {
	case "base":
		b.Base, err = duration(name, value, "0")
	case "cap":
		b.Cap, err = duration(name, value, "none")
	case "step":
		b.Step, err = duration(name, value, "")
	case "min":
		b.Min, err = duration(name, value, "")
	case "from":
		b.From, err = duration(name, value, "")
	case "to":
		b.To, err = duration(name, value, "")
	case "factor":
		b.Factor, err = decimal(name, value)
	case "fraction":
		b.Fraction, err = decimal(name, value)
	case "jitter":
		b.Jitter = Jitter(value)
	case "delays":
		b.Delays = nil
		for part := range strings.SplitSeq(value, ",") {
			d, bad := duration(name, part, "")
			if bad != nil {
				return bad
			}
			b.Delays = append(b.Delays, d)
		}
	default:
		return nixie.Errorf(nixie.CodeInvalid,
			"backoff has no setting %q: choose base, factor, step, delays, cap, min, jitter, fraction, from or to", name)
	}
	return err
}

// duration reads a duration; it returns −1 for the word off.
func duration(name, value, off string) (time.Duration, error) {
	if off != "" && value == off {
		return none, nil
	}
	d, err := filter.ParseDuration(value)
	if err != nil {
		return 0, nixie.Errorf(nixie.CodeInvalid, "backoff %s is %q: give a duration such as 500ms, 30s or 5m", name, value)
	}
	return d, nil
}

func decimal(name, value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, nixie.Errorf(nixie.CodeInvalid, "backoff %s is %q: give a number such as 2 or 0.3", name, value)
	}
	return f, nil
}
