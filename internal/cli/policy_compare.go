package cli

import (
	"strconv"
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
	out := newListing(f.globals, comparisonColumns(f.forPeople()))
	for _, name := range policy.Profiles() {
		steps, err := f.simulate(name)
		if err != nil {
			return err
		}
		c := comparison{Profile: name, Waits: []string{}, Runs: len(steps)}
		for _, s := range steps {
			if w := waitWord(s); w != "" {
				c.Waits = append(c.Waits, w)
			}
			c.End, c.Cause, c.after = verbWord(s), string(s.Cause), s.After
		}
		c.AfterMS = c.after.Milliseconds()
		if err := out.add(c); err != nil {
			return err
		}
	}
	return out.close()
}

func comparisonColumns(people bool) []column[comparison] {
	type v = comparison
	hole := func(s string) string {
		if people {
			return orDash(s)
		}
		return s
	}
	return []column[v]{
		{name: "profile", show: asTable, cell: func(c *v) string { return c.Profile }},
		{name: "runs", show: asTable, cell: func(c *v) string { return strconv.Itoa(c.Runs) }, kind: number},
		{name: "waits", show: asTable, cell: func(c *v) string { return hole(strings.Join(c.Waits, " ")) }, kind: flex},
		{name: "end", show: asTable, cell: func(c *v) string { return c.End }},
		{name: "cause", show: asTable, cell: func(c *v) string { return hole(c.Cause) }},
		{name: "after", show: asTable, cell: func(c *v) string { return span(c.after) }},
	}
}
