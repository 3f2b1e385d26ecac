package policy

import (
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Case gives other values to the messages of a type, to the failures of a
// reason, or to both at once. What its config leaves open is inherited: a case
// of type and reason inherits from that of the type, that from the case of the
// reason, and that from the config it stands in. Lists are joined. A case that
// names a profile inherits from that profile instead.
type Case struct {
	Type   string       // [nixie.Message].Type; empty is every type
	Reason nixie.Reason // empty is every reason
	Config Config       // without Cases, and without ClassRules where there is a Reason
}

// caseKey is a type and a reason; empty means that no case names it.
type caseKey struct {
	kind   string
	reason nixie.Reason
}

func (k caseKey) String() string {
	var words []string
	if k.kind != "" {
		words = append(words, "type "+oneLine(k.kind))
	}
	if k.reason != "" {
		words = append(words, "reason "+string(k.reason))
	}
	return "case " + strings.Join(words, ", ")
}

// addCases works out the values of every combination of a type and a reason
// that some case names. The policy has its own config already, base is that
// config before anything followed from it.
func (p *Policy) addCases(base Config, cases []Case) error {
	if len(cases) == 0 {
		return nil
	}
	if len(cases) > MaxCases {
		return nixie.Errorf(nixie.CodeInvalid, "there are %d cases, the limit is %d: join some", len(cases), MaxCases)
	}
	given := map[caseKey]Config{}
	kinds, reasons := []string{""}, []nixie.Reason{""}
	for _, c := range cases {
		key := caseKey{c.Type, c.Reason}
		if _, twice := given[key]; twice {
			return nixie.Errorf(nixie.CodeInvalid, "%s occurs twice: join the two", key)
		}
		config, err := c.given(key)
		if err != nil {
			return err
		}
		given[key] = config
		if !slices.Contains(kinds, c.Type) {
			kinds = append(kinds, c.Type)
		}
		if !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	p.cases = map[caseKey]*Config{}
	p.byKind = map[string][]*Config{}
	for _, kind := range kinds {
		for _, reason := range reasons {
			config, err := inherited(base, given, caseKey{kind, reason})
			if err != nil {
				return err
			}
			p.cases[caseKey{kind, reason}] = &config
			p.byKind[kind] = append(p.byKind[kind], &config)
		}
	}
	return nil
}

// given checks a case by itself.
func (c Case) given(key caseKey) (Config, error) {
	switch {
	case c.Type == "" && c.Reason == "":
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "a case names neither type nor reason: name one, or set the values outside of it")
	case c.Reason != "" && !knownReason(c.Reason):
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s: choose a reason of the list that nixie policy show prints", key)
	case len(c.Config.Cases) > 0:
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s has cases of its own: put them beside it", key)
	case c.Reason != "" && len(c.Config.ClassRules) > 0:
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s has rules, which are asked before the reason is known: put them into the case of the type or outside", key)
	}
	config, err := c.Config.counted()
	if err != nil {
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s: %w", key, err)
	}
	return config, nil
}

// inherited are the values of one combination.
func inherited(base Config, given map[caseKey]Config, key caseKey) (Config, error) {
	config := base
	var layers []caseKey
	if key.reason != "" {
		layers = append(layers, caseKey{"", key.reason})
	}
	if key.kind != "" {
		layers = append(layers, caseKey{key.kind, ""})
	}
	if len(layers) == 2 {
		layers = append(layers, key)
	}
	for _, k := range layers {
		c, ok := given[k]
		if !ok {
			continue
		}
		if c.Profile != "" {
			p, err := ProfileNamed(c.Profile)
			if err != nil {
				return config, nixie.Errorf(nixie.CodeInvalid, "%s: %w", k, err)
			}
			config = p.Config
		}
		config = c.over(config)
	}
	config.Cases = nil
	config, err := config.complete()
	if err != nil {
		return config, nixie.Errorf(nixie.CodeInvalid, "%s: %w", key, err)
	}
	return config, nil
}

// of returns the values for a message type and a reason.
func (p *Policy) of(kind string, reason nixie.Reason) *Config {
	if p.cases == nil {
		return &p.config
	}
	if _, named := p.byKind[kind]; !named {
		kind = ""
	}
	if c, ok := p.cases[caseKey{kind, reason}]; ok {
		return c
	}
	return p.cases[caseKey{kind, ""}]
}

// inEveryCase reports whether something holds whatever the reason of a failure
// of this delivery may be.
func (p *Policy) inEveryCase(d *nixie.Delivery, holds func(*Config) bool) bool {
	if p.cases == nil {
		return holds(&p.config)
	}
	configs, named := p.byKind[d.Type]
	if !named {
		configs = p.byKind[""]
	}
	return !slices.ContainsFunc(configs, func(c *Config) bool { return !holds(c) })
}
