package cli

import (
	"strings"
	"time"

	"github.com/nixie-go/nixie/policy"
)

// comparison is one profile's life of the message.
type comparison struct {
	Profile string   `json:"profile"`
	Waits   []string `json:"waits"`
	End     string   `json:"end"`
	Cause   string   `json:"cause,omitempty"`
	Runs    int      `json:"runs"`
	AfterMS int64    `json:"after_ms"`

	after time.Duration
}

func (f *simulateFlags) compareAll() error {
	type v = comparison
	var all []v
	for _, name := range policy.Profiles() {
		steps, err := f.simulate(name)
		if err != nil {
			return err
		}
		c := v{Profile: name, Waits: []string{}, Runs: len(steps)}
		for _, s := range steps {
			if w := waitWord(s); w != "" {
				c.Waits = append(c.Waits, w)
			}
			c.End, c.Cause, c.after = verbWord(s), string(s.Cause), s.After
		}
		c.AfterMS = c.after.Milliseconds()
		all = append(all, c)
	}
	return listed(f.globals, "", []column[v]{
		{name: "profile"}, {name: "runs"},
		{name: "waits", cell: func(c *v) string { return orDash(strings.Join(c.Waits, " ")) }, kind: flex},
		{name: "end"},
		{name: "cause", cell: func(c *v) string { return orDash(c.Cause) }},
		{name: "after", cell: func(c *v) string { return span(c.after) }},
	})(all, nil)
}
