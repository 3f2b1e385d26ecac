package policy

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/nixie-go/nixie"
)

// Limits of names of groups by hand.
const (
	maxGroupAs   = 20
	maxGroupRule = 200  // bytes of pattern and name
	maxGroupProg = 1000 // instructions of a compiled pattern, each of which may cost once a byte
)

// GroupRule gives a name to the group of the failures whose text matches a pattern: the name is in
// the fingerprint instead of text, type and stack. Class, reason, step and exit code still make
// groups. A handler names a group itself with [nixie.WithGroup], which outweighs rules.
type GroupRule struct {
	Pattern *regexp.Regexp // matched with the whole text of the failure, at most [nixie.MaxFailureText] bytes
	Name    string         // both together at most 200 bytes
}

// groupNamed returns the name of the group of a failure, by the first rule that matches, or "".
func (c *Config) groupNamed(f *nixie.Failure) string {
	for _, r := range c.GroupAs {
		if r.Pattern.MatchString(f.Text) {
			return r.Name
		}
	}
	return ""
}

// setGroupAs reads PATTERN=NAME. A pattern may have equals signs, a name has none.
func setGroupAs(c *Config, value string) error {
	at := strings.LastIndexByte(value, '=')
	if at <= 0 || strings.TrimSpace(value[at+1:]) == "" {
		return nixie.Errorf(nixie.CodeInvalid, "give PATTERN=NAME, such as 'card .* was declined=card declined'")
	}
	pattern, err := regexp.Compile(value[:at])
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "its pattern is none of RE2: %w", err)
	}
	c.GroupAs = append(c.GroupAs, GroupRule{pattern, strings.TrimSpace(value[at+1:])})
	return c.checkGroupAs()
}

func (c *Config) checkGroupAs() error {
	if n := len(c.GroupAs); n > maxGroupAs {
		return nixie.Errorf(nixie.CodeInvalid, "group_as has %d entries, the limit is %d: join patterns of one name with |", n, maxGroupAs)
	}
	for i, r := range c.GroupAs {
		if r.Pattern == nil || r.Name == "" {
			return nixie.Errorf(nixie.CodeInvalid, "entry %d of group_as has no pattern or no name: give both", i+1)
		}
		text := r.Pattern.String()
		if n := len(text) + len("=") + len(r.Name); n > maxGroupRule {
			return nixie.Errorf(nixie.CodeInvalid, "its pattern and name have %d bytes, the limit is %d: shorten them", n, maxGroupRule)
		}
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nixie.Errorf(nixie.CodeInvalid, "its pattern is none of RE2: %w", err)
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil || len(prog.Inst) > maxGroupProg {
			return nixie.Errorf(nixie.CodeInvalid,
				"its pattern %q repeats too much, the limit is %d steps: repeat less often", text, maxGroupProg)
		}
	}
	return nil
}

// groupAsRows describes the rules for people.
func (c *Config) groupAsRows() (rows []Row) {
	for _, r := range c.GroupAs {
		rows = append(rows, Row{"group_as", r.Pattern.String(), "such failures are the group " + r.Name})
	}
	return rows
}
