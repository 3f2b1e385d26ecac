package policy

import (
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Case gives other values to the messages of a type, to the failures of a reason, or to both at
// once. It inherits the fields that its config leaves zero:
//
//	a case of type and reason  inherits from the case of the type,
//	a case of a type           inherits from the case of the reason,
//	a case of a reason         inherits from the config that has the cases.
//
// Lists are joined. A case that names a profile inherits from that profile instead.
type Case struct {
	Type   string       // [nixie.Message].Type; empty is every type
	Reason nixie.Reason // empty is every reason
	Config Config       // without Cases, GroupAs and InClaim, and without ClassRules where there is a Reason
}

// caseKey names a case by type and reason; an empty field means every type or every reason.
type caseKey struct {
	messageType string
	reason      nixie.Reason
}

func (k caseKey) String() string {
	var words []string
	if k.messageType != "" {
		words = append(words, "type "+oneLine(k.messageType))
	}
	if k.reason != "" {
		words = append(words, "reason "+string(k.reason))
	}
	return "case " + strings.Join(words, ", ")
}

// addCases computes the values of every combination of a type and a reason that some case names.
// Base is the config of the policy before complete has filled in values that follow from others.
func (p *Policy) addCases(base Config, cases []Case) error {
	if len(cases) == 0 {
		return nil
	}
	if len(cases) > MaxCases {
		return nixie.Errorf(nixie.CodeInvalid, "there are %d cases, the limit is %d: join some", len(cases), MaxCases)
	}
	given := map[caseKey]Config{}
	types, reasons := []string{""}, []nixie.Reason{""}
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
		if !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
		}
		if !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	p.cases = map[caseKey]*Config{}
	p.byType = map[string][]*Config{}
	for _, messageType := range types {
		for _, reason := range reasons {
			config, err := inherited(base, given, caseKey{messageType, reason})
			if err != nil {
				return err
			}
			p.cases[caseKey{messageType, reason}] = &config
			p.byType[messageType] = append(p.byType[messageType], &config)
		}
	}
	return nil
}

// given checks a case alone and returns its config.
func (c Case) given(key caseKey) (Config, error) {
	switch {
	case c.Type == "" && c.Reason == "":
		return Config{}, nixie.Errorf(nixie.CodeInvalid,
			"a case names neither type nor reason: name one, or set the values outside of it")
	case c.Reason != "" && !knownReason(c.Reason):
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s: choose a reason of the list that nixie policy show prints", key)
	case len(c.Config.Cases) > 0:
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s has cases of its own: put them next to it", key)
	case len(c.Config.GroupAs) > 0:
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s has group_as, which is for all types and reasons: put it outside", key)
	case c.Config.InClaim.given():
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s has in_claim, which is for all types and reasons: put it outside", key)
	case c.Reason != "" && len(c.Config.ClassRules) > 0:
		return Config{}, nixie.Errorf(nixie.CodeInvalid,
			"%s has rules, which are asked before the reason is known: put them into the case of the type or outside", key)
	}
	config, err := c.Config.counted()
	if err != nil {
		return Config{}, nixie.Errorf(nixie.CodeInvalid, "%s: %w", key, err)
	}
	return config, nil
}

// inherited returns the values of one combination.
func inherited(base Config, given map[caseKey]Config, key caseKey) (Config, error) {
	config := base
	var layers []caseKey
	if key.reason != "" {
		layers = append(layers, caseKey{"", key.reason})
	}
	if key.messageType != "" {
		layers = append(layers, caseKey{key.messageType, ""})
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
			config = p.of(base.Awaited)
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

// uncapped returns the values for notices of deaths. A notice that died of a cap of its attempts
// would make a letter about a letter.
func (c Config) uncapped() Config {
	c.MaxAttempts, c.MaxDeliveries, c.RetryBudget = none, none, none
	return c
}

// of returns the values for a message type and a reason.
func (p *Policy) of(messageType string, reason nixie.Reason) *Config {
	_, named := p.byType[messageType]
	if messageType == nixie.TypeDeadLetter && !named {
		return &p.notice
	}
	if p.cases == nil {
		return &p.config
	}
	if !named {
		messageType = ""
	}
	if c, ok := p.cases[caseKey{messageType, reason}]; ok {
		return c
	}
	return p.cases[caseKey{messageType, ""}]
}

// inEveryCase reports whether holds is true of the values for every reason that a failure of this
// delivery can have.
func (p *Policy) inEveryCase(d *nixie.Delivery, holds func(*Config) bool) bool {
	configs, named := p.byType[d.Type]
	switch {
	case named:
	case d.Type == nixie.TypeDeadLetter:
		return holds(&p.notice)
	case p.cases == nil:
		return holds(&p.config)
	default:
		configs = p.byType[""]
	}
	return !slices.ContainsFunc(configs, func(c *Config) bool { return !holds(c) })
}
