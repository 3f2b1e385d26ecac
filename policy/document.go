package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Document is a policy as people write it: options by name, each with its values. A queue stores
// one as its policy, and the commands make one of their flags. The zero value has no options. A
// Document never changes.
type Document struct {
	values map[string][]string
}

// ParseDocument reads a document: lines of the form NAME=VALUE, such as max-attempts=10 or
// backoff=linear base=1m. An option that is a list has a line for each entry. [DocumentOptions]
// lists all options. Errors have [nixie.CodeInvalid] or [nixie.CodeLimit] and name the option. A
// document without an error makes a policy.
func ParseDocument(text string) (Document, error) {
	var d Document
	if len(text) > nixie.MaxPolicyText {
		return d, nixie.Errorf(nixie.CodeLimit, "policy has %d bytes, the limit is %d: shorten it", len(text), nixie.MaxPolicyText)
	}
	given := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return d, nixie.Errorf(nixie.CodeInvalid,
				"policy has the line %q: write NAME=VALUE, such as max-attempts=10", cut(line, MaxLabel))
		}
		given[name] = append(given[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var err error
		if d, err = d.With(name, given[name]...); err != nil {
			return Document{}, err
		}
	}
	if _, err := d.Policy(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// With returns a copy of the document with other values of an option; without values the copy does
// not have the option. Only [Document.Policy] checks whether the values fit together.
func (d Document) With(name string, values ...string) (Document, error) {
	o := optionNamed(name)
	switch {
	case o == nil:
		return d, nixie.Errorf(nixie.CodeInvalid, "policy has no option %q: choose one of %s", name, strings.Join(optionNames(), ", "))
	case len(values) > 1 && !o.list:
		return d, nixie.Errorf(nixie.CodeInvalid, "%s is given %d times: give it once", name, len(values))
	}
	var kept []string
	for _, value := range values {
		value = strings.TrimSpace(value)
		if strings.ContainsAny(value, "\r\n") {
			return d, nixie.Errorf(nixie.CodeInvalid, "%s is %q: write it in one line", name, value)
		}
		if err := o.set(&Config{}, value); err != nil {
			return d, nixie.Errorf(nixie.CodeOf(err), "%s is %q: %w", name, value, err)
		}
		kept = append(kept, value)
	}
	d.values = maps.Clone(d.values)
	if len(kept) == 0 {
		delete(d.values, name)
		return d, nil
	}
	if d.values == nil {
		d.values = map[string][]string{}
	}
	d.values[name] = kept
	return d, nil
}

// Values returns the values of an option.
func (d Document) Values(name string) []string { return slices.Clone(d.values[name]) }

// Empty reports whether the document has no options.
func (d Document) Empty() bool { return len(d.values) == 0 }

// Over puts the options of d over those of base. If d names a profile it starts from that profile,
// and nothing of base counts.
func (d Document) Over(base Document) Document {
	if len(d.values["profile"]) > 0 {
		return d
	}
	all := maps.Clone(base.values)
	if all == nil {
		return d
	}
	maps.Copy(all, d.values)
	return Document{all}
}

// String returns the document in the form that [ParseDocument] reads, in the order of
// [DocumentOptions].
func (d Document) String() string {
	var lines []string
	for _, o := range options() {
		for _, value := range d.values[o.name] {
			lines = append(lines, o.name+"="+value)
		}
	}
	return strings.Join(lines, "\n")
}

// Config returns the values of the document, for [New].
func (d Document) Config() (Config, error) {
	var c Config
	for _, o := range options() {
		for _, value := range d.values[o.name] {
			if err := o.set(&c, value); err != nil {
				return c, nixie.Errorf(nixie.CodeOf(err), "%s is %q: %w", o.name, value, err)
			}
		}
	}
	return c, nil
}

// Policy makes a policy of the document. Its profile gives the values that the document leaves out.
func (d Document) Policy() (*Policy, error) {
	c, err := d.Config()
	if err != nil {
		return nil, err
	}
	return New(c)
}
