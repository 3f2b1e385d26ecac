package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// MaxVerdict limits the bytes of a verdict.
const MaxVerdict = 64 << 10

// Verdict is the decision of a command about its item. The command writes a JSON object to the file
// that NIXIE_VERDICT names:
//
//	{"outcome": "retry", "reason": "throttled", "retry_after": "30s", "steps": ["fetched"],
//	 "stack_trace": "Traceback …", "error_context": ["loading the order"]}
//
// Only outcome is required. A reason that is none of [nixie.Reasons] is kept as Text, with the
// reason command-failed. The value of retry_after is a duration, a number of seconds, or a date as
// HTTP or RFC 3339 writes it; it goes with retry and release only. As for Go's [nixie.RetryAfter],
// what is past is now, and what is beyond [nixie.MaxDelay] is that.
type Verdict struct {
	Outcome    nixie.Verb
	Reason     nixie.Reason  // may be empty
	Text       string        // the reason in the command's own words
	Class      nixie.Class   // empty lets the policy classify
	Message    string        // error text instead of the line of the outputs that says why
	RetryAfter time.Duration // least delay; 0 lets the policy choose one for a retry
	Timed      bool          // RetryAfter was given, which may be 0
	Steps      []string      // finished now or before
	Stack      string        // of the error; what is over [nixie.MaxStack] is cut
	Context    []string      // what was being done, outermost first; at most [nixie.MaxContext] lines
}

func (v *Verdict) mark(err error) error {
	switch v.Class {
	case nixie.ClassPermanent:
		err = nixie.Permanent(err)
	case nixie.ClassTransient:
		err = nixie.Transient(err)
	case nixie.ClassUnknown:
		err = unknown(err)
	}
	reason := v.Reason
	if reason == "" {
		reason = nixie.ReasonCommandFailed
	}
	err = nixie.WithReason(err, reason)
	if v.Timed {
		err = &nixie.Outcome{After: v.RetryAfter, Timed: true, Err: err}
	}
	return nixie.Verdict(v.Outcome, err)
}

// ParseVerdict reads a verdict. It refuses unknown and doubled fields, wrong types, text after the
// object, and more than [MaxVerdict] bytes. A byte order mark is skipped. A date in retry_after
// becomes the time from now on. Errors are of [nixie.CodeInvalid] or [nixie.CodeLimit] and name the
// field.
func ParseVerdict(data []byte, now time.Time) (Verdict, error) {
	if len(data) > MaxVerdict {
		return Verdict{}, nixie.Errorf(nixie.CodeLimit, "it has more than %d bytes, the limit: write less, or to stderr", MaxVerdict)
	}
	v, err := ParseFields(bytes.TrimPrefix(data, []byte("\ufeff")), now, func(string, *json.Decoder) (bool, error) { return false, nil })
	if err == nil && v.Outcome == "" {
		return Verdict{}, invalid("field outcome is missing: give one of %v", outcomes())
	}
	return v, err
}

// ParseFields reads an object that has more fields than a verdict, with any of those of a verdict.
// Other gets the name of each of its fields first, with its value next in the decoder. It reports
// whether it has read that. There is no limit of bytes.
func ParseFields(data []byte, now time.Time, other func(name string, value *json.Decoder) (bool, error)) (Verdict, error) {
	if !utf8.Valid(data) {
		return Verdict{}, invalid("it is not valid UTF-8")
	}
	var v Verdict
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := v.parse(decoder, now, other); err != nil {
		return Verdict{}, err
	}
	if v.RetryAfter > 0 && v.Outcome != "" && v.Outcome != nixie.Retry && v.Outcome != nixie.Release {
		return Verdict{}, invalid("field retry_after goes with outcome retry or release, not %s", v.Outcome)
	}
	return v, nil
}

func (v *Verdict) parse(decoder *json.Decoder, now time.Time, other func(string, *json.Decoder) (bool, error)) error {
	token, err := decoder.Token()
	if err != nil {
		return syntax(err)
	}
	if token != json.Delim('{') {
		return invalid("it is not a JSON object")
	}
	var seen []string
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return syntax(err)
		}
		name, _ := token.(string) // a key is a string, or Token fails
		if slices.Contains(seen, name) {
			return invalid("field %s occurs twice", quote(name))
		}
		seen = append(seen, name)
		known, err := other(name, decoder)
		if err == nil && !known {
			err = v.field(name, decoder, now)
		}
		if err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return syntax(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return invalid("there is more after the JSON object")
	}
	return nil
}

func (v *Verdict) field(name string, decoder *json.Decoder, now time.Time) (err error) {
	var text string
	switch name {
	case "steps":
		v.Steps, err = readSteps(decoder)
		return err
	case "error_context":
		v.Context, err = readTexts(name, decoder, nixie.MaxContext, "lines", "leave the outermost out")
		return err
	case "stack_trace":
		v.Stack, err = readText(name, decoder)
		return err
	case "retry_after":
		v.Timed = true
		v.RetryAfter, err = readDelay(decoder, now)
		return err
	case "message":
		v.Message, err = readText(name, decoder)
		return err
	case "outcome":
		text, err = readText(name, decoder)
		v.Outcome = nixie.Verb(text)
		if err == nil && !slices.Contains(outcomes(), v.Outcome) {
			return invalid("field outcome is %s: give one of %v", quote(text), outcomes())
		}
		return err
	case "class":
		text, err = readText(name, decoder)
		v.Class = nixie.Class(text)
		if err == nil && v.Class != nixie.ClassTransient && v.Class != nixie.ClassPermanent && v.Class != nixie.ClassUnknown {
			return invalid("field class is %s: give transient, permanent or unknown", quote(text))
		}
		return err
	case "reason":
		text, err = readText(name, decoder)
		if slices.Contains(nixie.Reasons(), nixie.Reason(text)) {
			v.Reason = nixie.Reason(text)
		} else {
			v.Text = text
		}
		return err
	}
	return invalid("field %s is unknown: there are outcome, reason, class, message, retry_after, steps, "+
		"stack_trace and error_context", quote(name))
}

func outcomes() []nixie.Verb {
	return []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt}
}

func readText(name string, decoder *json.Decoder) (string, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", syntax(err)
	}
	text, ok := token.(string)
	if !ok {
		return "", invalid("field %s is not a string", name)
	}
	return text, nil
}

func readSteps(decoder *json.Decoder) ([]string, error) {
	all, err := readTexts("steps", decoder, nixie.MaxSteps, "names", "use fewer, larger steps")
	if err != nil {
		return nil, err
	}
	var steps []string
	for _, step := range all {
		if step == "" {
			return nil, invalid("field steps holds an empty name")
		}
		if err := nixie.CheckName("a name in field steps", step); err != nil {
			return nil, err
		}
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// readTexts reads an array of at most that many strings.
func readTexts(name string, decoder *json.Decoder, most int, of, instead string) (all []string, err error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, syntax(err)
	}
	if token != json.Delim('[') {
		return nil, invalid("field %s is not an array of strings", name)
	}
	for decoder.More() {
		text, err := readText(name, decoder)
		if err != nil {
			return nil, err
		}
		if len(all) == most {
			return nil, nixie.Errorf(nixie.CodeLimit, "field %s has more than %d %s, the limit: %s", name, most, of, instead)
		}
		all = append(all, text)
	}
	if _, err = decoder.Token(); err != nil {
		return nil, syntax(err)
	}
	return all, nil
}

func invalid(format string, args ...any) error {
	return nixie.Errorf(nixie.CodeInvalid, format, args...)
}

func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("it ends too early")
	}
	return invalid("it is not valid JSON: %w", err)
}

// quote makes foreign text safe for an error.
func quote(s string) string { return strconv.Quote(clip(s, 64)) }

// ReadVerdict reads and removes the verdict file of a command. It returns nil when the command has
// not written one. No item may choose the path. ReadVerdict opens only a regular file.
// Now is for a date in it, see [ParseVerdict].
func ReadVerdict(path string, now time.Time) (*Verdict, error) {
	data, err := TakeFile(path, MaxVerdict+1)
	if err != nil || data == nil {
		return nil, err
	}
	v, err := ParseVerdict(data, now)
	if err != nil {
		return nil, err
	}
	return &v, nil
}
