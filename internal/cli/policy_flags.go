package cli

import (
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/policy"
)

// policyFlags are the options of a policy as flags. All commands have the same.
type policyFlags struct {
	flags *pflag.FlagSet
	one   map[string]*string
	many  map[string]*[]string
}

// register adds the flags. Otherwise names the policy that applies where a flag is not given.
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

// document returns the options of the flags that were given.
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

// given reports whether a flag was given.
func (p *policyFlags) given(name string) bool { return p.flags.Changed(name) }
