package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Document is a policy as people write it: options by name, each with the values
// given for it. It is what a queue keeps as its policy and what flags of the
// commands say. The zero value says nothing. A Document never changes.
type Document struct {
	values map[string][]string
}

// ParseDocument reads a document: an option and its value a line, NAME=VALUE, such as
// max-attempts=10 or backoff=linear base=1m. Options that are lists have a line for
// each entry; [DocumentOptions] has all of them. Errors are of [nixie.CodeInvalid] or
// [nixie.CodeLimit] and name the option; a document that is read makes a policy.
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
			return d, nixie.Errorf(nixie.CodeInvalid, "policy has the line %q: write NAME=VALUE, such as max-attempts=10", cut(line, MaxLabel))
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

// With returns the document with other values of an option; without any it says
// nothing of it. Whether the values fit together only [Document.Policy] tells.
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

// Values are those given for an option.
func (d Document) Values(name string) []string { return slices.Clone(d.values[name]) }

// Empty reports whether the document says nothing.
func (d Document) Empty() bool { return len(d.values) == 0 }

// Over puts the options of d over those of base. One that names a profile
// starts from that profile, and takes nothing of base.
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

// String is the document as [ParseDocument] reads it, in the order of [DocumentOptions].
func (d Document) String() string {
	var lines []string
	for _, o := range options() {
		for _, value := range d.values[o.name] {
			lines = append(lines, o.name+"="+value)
		}
	}
	return strings.Join(lines, "\n")
}

// Config is what the document says, for [New].
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

// Policy makes a policy of the document, filled up from its profile.
func (d Document) Policy() (*Policy, error) {
	c, err := d.Config()
	if err != nil {
		return nil, err
	}
	return New(c)
}
