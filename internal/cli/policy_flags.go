package cli

import (
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/policy"
)

// policyFlags are the options of a policy as flags, in all commands alike.
type policyFlags struct {
	flags *pflag.FlagSet
	one   map[string]*string
	many  map[string]*[]string
}

// register adds the flags; otherwise says whose values hold that are not given.
func (p *policyFlags) register(fs *pflag.FlagSet, otherwise string) {
	p.flags = fs
	p.one, p.many = map[string]*string{}, map[string]*[]string{}
	for _, o := range policy.DocumentOptions() {
		usage := o.Meaning + ": " + o.Value
		if policy.IsList(o.Name) {
			p.many[o.Name] = fs.StringArray(o.Name, nil, usage)
			continue
		}
		p.one[o.Name] = fs.String(o.Name, "", usage+" (default that of "+otherwise+")")
	}
}

// document is what the flags say. Of a flag that is not given it says nothing.
func (p *policyFlags) document() (d policy.Document, err error) {
	for _, o := range policy.DocumentOptions() {
		if !p.given(o.Name) {
			continue
		}
		values := []string{}
		if policy.IsList(o.Name) {
			values = *p.many[o.Name]
		} else {
			values = append(values, *p.one[o.Name])
		}
		if d, err = d.With(o.Name, values...); err != nil {
			return d, usagef("--%v", err)
		}
	}
	return d, nil
}

// given reports whether somebody gave a flag.
func (p *policyFlags) given(name string) bool { return p.flags.Changed(name) }
