package privacy

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Hidden stands for what was hidden.
const Hidden = "***"

// withheld replaces a text whose rule panicked.
const withheld = Hidden + " (withheld: a rule of the mask failed)"

// Numbers of a mask.
const (
	MinValue     = 6 // bytes of the shortest value that [Values] hides
	minEnvSecret = 8 // bytes of the shortest value that [Environment] hides
)

// Rule returns text with its secrets replaced by [Hidden]. It has to be pure,
// safe for concurrent use and linear in the text.
type Rule func(text string) string

// Mask applies its rules one after the other. A nil Mask hides nothing. It is
// safe for concurrent use.
type Mask []Rule

// Text returns text without its secrets. A text whose rule panics is withheld
// whole.
func (m Mask) Text(text string) (masked string) {
	defer func() {
		if recover() != nil {
			masked = withheld
		}
	}()
	for _, rule := range m {
		text = rule(text)
	}
	return text
}

// Failure hides the secrets in all texts of a failure that come from its error:
// text, type, context, stack, step, place of the log, and attachments that are
// text. The error itself is not touched. Slices are replaced, not written to.
func (m Mask) Failure(f *nixie.Failure) {
	if len(m) == 0 {
		return
	}
	for _, text := range [...]*string{&f.Text, &f.Type, &f.Stack, &f.Step, &f.LogLocation} {
		*text = m.Text(*text)
	}
	f.Context = slices.Clone(f.Context)
	for i, line := range f.Context {
		f.Context[i] = m.Text(line)
	}
	f.Attachments = slices.Clone(f.Attachments)
	for i := range f.Attachments {
		a := &f.Attachments[i]
		a.Name = m.Text(a.Name)
		if bytes.IndexByte(a.Data, 0) >= 0 {
			continue // not a text
		}
		a.Data = []byte(m.Text(string(a.Data)))
	}
}

// Header returns the value of a header: hidden whole if its name says that it
// is a secret, else as Text has it.
func (m Mask) Header(name, value string) string {
	if len(m) > 0 && value != "" && telling(name) != harmless {
		return Hidden
	}
	return m.Text(value)
}

// Pattern hides what matches, or, if the pattern has groups, what its groups
// match.
func Pattern(pattern *regexp.Regexp) Rule {
	return func(text string) string {
		var out strings.Builder
		kept := 0
		for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
			spans := match[2:]
			if len(spans) == 0 {
				spans = match
			}
			for i := 0; i < len(spans); i += 2 {
				if from, to := spans[i], spans[i+1]; from >= kept && from < to {
					out.WriteString(text[kept:from])
					out.WriteString(Hidden)
					kept = to
				}
			}
		}
		if kept == 0 {
			return text
		}
		out.WriteString(text[kept:])
		return out.String()
	}
}

// Values hides known secrets wherever they occur. Those shorter than
// [MinValue] are left out, since they are parts of ordinary words.
func Values(secrets ...string) Rule {
	var known []string
	for _, s := range secrets {
		if len(s) >= MinValue {
			known = append(known, s)
		}
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(known))
	for _, s := range known {
		pairs = append(pairs, s, Hidden)
	}
	return strings.NewReplacer(pairs...).Replace
}

// Environment hides the values of those variables, given as NAME=value, whose
// names say that they are secrets.
func Environment(variables []string) Rule {
	var secrets []string
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		if telling(name) != harmless && len(value) >= minEnvSecret && !harmlessValue(value) && !strings.HasPrefix(value, "/") {
			secrets = append(secrets, value)
		}
	}
	return Values(secrets...)
}
