package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// option is an option of a [Document].
type option struct {
	name   string
	values string // describes the values that it takes
	means  string
	list   bool // it may be given several times
	set    func(c *Config, value string) error
}

// options lists all options in the order in which a document has them.
func options() []option {
	return []option{
		{"profile", "one of " + strings.Join(Profiles(), ", "), "set of values that all others start from", false, setProfile},
		counted("max-attempts", "executions in one generation, the first included", func(c *Config) *int { return &c.MaxAttempts }),
		counted("max-deliveries", "claims in one generation", func(c *Config) *int { return &c.MaxDeliveries }),
		counted("max-crashes", "vanished holders, then it is poison; there is no none", func(c *Config) *int { return &c.MaxCrashes }),
		counted("max-redrives", "redrives, then a death means quarantine", func(c *Config) *int { return &c.MaxRedrives }),
		lasting("min-age", "failures that time may heal end no message before its first one is this old",
			func(c *Config) *time.Duration { return &c.MinAge }),
		lasting("max-age", "no retry this long after it was enqueued or redriven", func(c *Config) *time.Duration { return &c.MaxAge }),
		lasting("retry-budget", "bound on the sum of all waits in one generation",
			func(c *Config) *time.Duration { return &c.RetryBudget }),
		{"backoff", "a duration, or a formula with settings such as 'linear base=1m step=1m cap=15m jitter=none'",
			"wait before a retry", false, setBackoff},
		{"in-claim", inClaimForm, "further runs of a command under one claim; together they are one attempt", false, setInClaim},
		{"on-exhausted", "bury, hold, discard or halt", "what becomes of a message that is given up", false, setExhausted},
		picking("never-dead", "failures that are retried until a hard cap ends it", func(c *Config) *[]Matcher { return &c.NeverDead }),
		picking("dead-at-once", "failures that are not retried", func(c *Config) *[]Matcher { return &c.DeadAtOnce }),
		picking("review-on", "failures whose letter a person has to see first", func(c *Config) *[]Matcher { return &c.ReviewOn }),
		{"group-as", "PATTERN=NAME, such as 'card .* was declined=card declined'",
			"name of the group of failures whose text matches; the first counts", true, setGroupAs},
		{"case", "type, reason or both, and options, such as 'reason=throttled; max-attempts=20'",
			"other values for some types and reasons", true, setCase},
	}
}

// DocumentOptions lists the options of a [Document]: the name in Name, the values that it takes in
// Value. An option whose Value ends with "each on its own" may be given several times.
func DocumentOptions() []Row {
	var rows []Row
	for _, o := range options() {
		values := o.values
		if o.list {
			values += ", each on its own"
		}
		rows = append(rows, Row{o.name, values, o.means})
	}
	return rows
}

// IsList reports whether an option may be given several times.
func IsList(name string) bool {
	o := optionNamed(name)
	return o != nil && o.list
}

func optionNamed(name string) *option {
	all := options()
	if i := slices.IndexFunc(all, func(o option) bool { return o.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func optionNames() (names []string) {
	for _, o := range options() {
		names = append(names, o.name)
	}
	return names
}

func setProfile(c *Config, value string) error {
	_, err := ProfileNamed(value)
	c.Profile = value
	return err
}

func setExhausted(c *Config, value string) error {
	switch c.OnExhausted = nixie.Verb(value); c.OnExhausted {
	case nixie.Bury, nixie.Hold, nixie.Discard, nixie.Halt:
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "choose bury, hold, discard or halt")
}

func setBackoff(c *Config, value string) (err error) {
	c.Backoff, err = ParseBackoff(value)
	return err
}

// counted makes an option that takes a number.
func counted(name, means string, field func(*Config) *int) option {
	return option{name, "a number from 1, or none", means, false, func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if value == "none" {
			n, err = none, nil
		}
		if err != nil || n == 0 || n < none || n > MaxCount {
			return nixie.Errorf(nixie.CodeInvalid, "give a number from 1 to %d, or none", MaxCount)
		}
		*field(c) = n
		return nil
	}}
}

// lasting makes an option that takes a duration.
func lasting(name, means string, field func(*Config) *time.Duration) option {
	return option{name, "a duration such as 90m or 7d, or none", means, false, func(c *Config, value string) error {
		if value == "none" {
			*field(c) = none
			return nil
		}
		d, err := filter.ParseDuration(value)
		if err == nil && (d <= 0 || d > nixie.MaxDelay) {
			err = nixie.Errorf(nixie.CodeInvalid, "give a duration up to %s, or none", nixie.MaxDelay)
		}
		*field(c) = d
		return err
	}}
}

// picking makes an option that takes a list of matchers.
func picking(name, means string, field func(*Config) *[]Matcher) option {
	return option{name, matcherForm, means, true, func(c *Config, value string) error {
		m, err := ParseMatcher(value)
		*field(c) = append(*field(c), m)
		return err
	}}
}

const matcherForm = "reason:, name:, code:, exit: or text: and what it is, such as reason:timeout,throttled or text:'no space'"

// ParseMatcher reads a matcher. Errors have [nixie.CodeInvalid].
//
//	reason:timeout,throttled   any of the reasons
//	name:RateLimitError        any of the names, with commas
//	exit:1,2                   any of the exit codes
//	code:limit                 the code
//	text:no space              a pattern of package regexp
func ParseMatcher(text string) (Matcher, error) {
	kind, value, _ := strings.Cut(text, ":")
	list := strings.Split(value, ",")
	switch {
	case value == "" || slices.Contains(list, "") && kind != "text":
	case kind == "reason":
		var reasons []nixie.Reason
		for _, r := range list {
			if !knownReason(nixie.Reason(r)) {
				return Matcher{}, nixie.Errorf(nixie.CodeInvalid, "reason %q is unknown: choose of %v", r, nixie.Reasons())
			}
			reasons = append(reasons, nixie.Reason(r))
		}
		return MatchReason(reasons...), nil
	case kind == "name":
		return MatchName(list...), nil
	case kind == "code" && len(list) == 1:
		return MatchCode(nixie.Code(value)), nil
	case kind == "exit":
		var codes []int
		for _, c := range list {
			n, err := strconv.Atoi(c)
			if err != nil || n < 1 || n > 255 {
				return Matcher{}, nixie.Errorf(nixie.CodeInvalid, "exit code %q: give numbers from 1 to 255", c)
			}
			codes = append(codes, n)
		}
		return MatchExit(codes...), nil
	case kind == "text":
		pattern, err := regexp.Compile(value)
		if err != nil {
			return Matcher{}, nixie.Errorf(nixie.CodeInvalid, "what comes after text: is no regular expression: %w", err)
		}
		return MatchText(pattern), nil
	}
	return Matcher{}, nixie.Errorf(nixie.CodeInvalid, "give %s", matcherForm)
}

// setCase reads a case: type, reason or both, then options, with semicolons between.
func setCase(c *Config, value string) error {
	var of Case
	for part := range strings.SplitSeq(value, ";") {
		name, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		o := optionNamed(name)
		switch {
		case ok && name == "type":
			of.Type = v
		case ok && name == "reason":
			of.Reason = nixie.Reason(v)
		case !ok || o == nil || name == "case" || name == "in-claim":
			return nixie.Errorf(nixie.CodeInvalid,
				"a case has %q: give type=, reason= and options such as max-attempts=20, with semicolons between", part)
		default:
			if err := o.set(&of.Config, v); err != nil {
				return nixie.Errorf(nixie.CodeInvalid, "%s is %q: %w", name, v, err)
			}
		}
	}
	if _, err := of.given(caseKey{of.Type, of.Reason}); err != nil {
		return err
	}
	c.Cases = append(c.Cases, of)
	return nil
}
