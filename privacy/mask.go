package privacy

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Hidden replaces every secret.
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

// Failure hides the secrets in all texts of a failure that come from its error. They are text,
// type, context, stack, step, name of the group, log location, and attachments that are text. It
// does not change the error itself. It replaces slices and does not write into them.
func (m Mask) Failure(f *nixie.Failure) {
	if len(m) == 0 {
		return
	}
	for _, text := range [...]*string{&f.Text, &f.Type, &f.Stack, &f.Step, &f.Group, &f.LogLocation} {
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

// Header returns the masked value of a header. It hides the whole value if the name is that of a
// secret, and else returns the same as Text.
func (m Mask) Header(name, value string) string {
	if len(m) > 0 && value != "" && classify(name) != harmless {
		return Hidden
	}
	return m.Text(value)
}

// Pattern hides the matches of a pattern, or the matches of its groups if it has groups.
func Pattern(pattern *regexp.Regexp) Rule {
	return func(text string) string {
		var out strings.Builder
		kept := 0
		for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
			ranges := match[2:]
			if len(ranges) == 0 {
				ranges = match
			}
			for i := 0; i < len(ranges); i += 2 {
				if from, to := ranges[i], ranges[i+1]; from >= kept && from < to {
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

// Values hides known secrets wherever they occur. It leaves out secrets shorter than [MinValue],
// which may be parts of ordinary words.
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

// Environment hides the values of variables, given as NAME=value, whose names are those of secrets.
func Environment(variables []string) Rule {
	var secrets []string
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		if classify(name) != harmless && len(value) >= minEnvSecret && !harmlessValue(value) && !strings.HasPrefix(value, "/") {
			secrets = append(secrets, value)
		}
	}
	return Values(secrets...)
}
