package policy

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Row is a row of a table for people.
type Row struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

// Table lists every value of the policy, for nixie policy show. The differences of each case come
// after the options.
func (p *Policy) Table() []Row {
	rows := append(p.config.options(), Row{"earliest_end", p.earliest(), "of a message that always fails, after its first failure"})
	rows = append(rows, limits()...)
	for i, r := range p.config.ClassRules {
		means := strings.TrimSpace(string(r.Class) + " " + string(r.Reason))
		rows = append(rows, Row{"rule " + strconv.Itoa(i+1), r.When.String(), "such a failure is " + means})
	}
	rows = append(rows, p.config.groupAsRows()...)
	for _, c := range p.config.Cases {
		key := caseKey{c.Type, c.Reason}
		own := p.of(key.messageType, key.reason).options()
		rows = append(rows, Row{key.String(), differences(p.config.options(), own), "what applies instead"})
	}
	return rows
}

// options returns a row for each field of a config.
func (c *Config) options() []Row {
	retries := none
	if c.MaxAttempts != none {
		retries = c.MaxAttempts - 1
	}
	return []Row{
		{"profile", c.Profile, "the set of values that the others start from"},
		{"max_attempts", count(c.MaxAttempts), "executions in one generation, the first included"},
		{"max_retries", count(retries), "the same, the first execution not counted"},
		{"max_deliveries", count(c.MaxDeliveries), "claims in one generation, releases included, crashes not"},
		{"max_crashes", count(c.MaxCrashes), "holders that vanish in a row, the last with it alone, then it is poison"},
		{"min_age", short(c.MinAge), "no end before the first failure is this old, if time may heal it; 2m in run and map"},
		{"max_age", short(c.MaxAge), "no retry this long after it was enqueued or redriven"},
		{"retry_budget", short(c.RetryBudget), "bound on the sum of all waits in one generation"},
		{"max_redrives", count(c.MaxRedrives), "redrives, then a death means quarantine"},
		{"on_exhausted", string(c.OnExhausted), "what becomes of a message that is given up"},
		{"backoff", c.Backoff.String(), "wait before a retry, by failures in this generation"},
		{"rules", listed(len(c.ClassRules), "none"), "what failures are; the first that matches counts"},
		{"never_dead", either(c.NeverDead), "such a failure is retried until a hard cap ends it"},
		{"dead_at_once", either(c.DeadAtOnce), "such a failure is not retried"},
		{"review_on", either(c.ReviewOn), "a person has to see the letter of such a failure first"},
		{"extend_on", either(c.ExtendOn), "such an error is no failure but asks for more time"},
		{"exact_match", strconv.FormatBool(c.ExactMatch), "matchers look at the error itself, not at what it wraps"},
		{"cases", listed(len(c.Cases), "none"), "types and reasons that have values of their own"},
	}
}

// differences describes the options of a case that differ from those of the config.
func differences(base, other []Row) string {
	var words []string
	for i, s := range other {
		if s.Value != base[i].Value && s.Name != "cases" && s.Name != "max_retries" {
			words = append(words, s.Name+" "+s.Value)
		}
	}
	return cmp.Or(strings.Join(words, "; "), "nothing else")
}

// either describes a list of matchers, of which one has to hold.
func either(matchers []Matcher) string {
	var words []string
	for _, m := range matchers {
		words = append(words, m.String())
	}
	return cmp.Or(strings.Join(words, "; "), "none")
}

func listed(n int, otherwise string) string {
	if n == 0 {
		return otherwise
	}
	return strconv.Itoa(n)
}

func count(n int) string {
	if n == none {
		return "none"
	}
	return strconv.Itoa(n)
}

// short writes a duration without zero parts at its end: 15m, not 15m0s.
func short(d time.Duration) string {
	if d == none {
		return "none"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// earliest says how long after its first failure a message that always fails ends at the earliest,
// and one whose failures time may heal.
func (p *Policy) earliest() string {
	ends := Earliest(p, Scenario{Err: errors.New("it failed")})
	healing := Earliest(p, Scenario{Err: nixie.Transient(errors.New("it failed"))})
	switch {
	case ends == none || healing == none:
		return "after more than " + strconv.Itoa(maxSought) + " runs"
	case ends == healing:
		return short(ends)
	}
	return short(ends) + ", where time may heal it " + short(healing)
}
