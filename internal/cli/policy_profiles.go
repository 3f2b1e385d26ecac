package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

func newPolicyProfiles(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "profiles",
		Short: "List the sets of values that a policy can start from",
		Example: `  nixie policy profiles
  nixie policy profiles -o wide
  nixie policy show --profile wink`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := g.listFormat(); err != nil {
				return err
			}
			out := newListing(g, profileColumns())
			for _, name := range policy.Profiles() {
				v, err := viewProfile(name)
				if err != nil {
					return err
				}
				if err := out.add(v); err != nil {
					return err
				}
			}
			return out.close()
		},
	}
}

// profileView is a profile for people and programs.
type profileView struct {
	Name          string `json:"name"`
	MaxAttempts   int    `json:"max_attempts"`
	MaxDeliveries int    `json:"max_deliveries"`
	MaxRedrives   int    `json:"max_redrives"`
	OnExhausted   string `json:"on_exhausted"`
	Backoff       string `json:"backoff"`
	InPlace       string `json:"in_place"`
	OnDuplicate   string `json:"on_duplicate"`
	Breaker       string `json:"breaker"`
	About         string `json:"about"`
}

func viewProfile(name string) (profileView, error) {
	profile, err := policy.ProfileNamed(name)
	if err != nil {
		return profileView{}, err
	}
	p, err := policy.New(policy.Config{Profile: name})
	if err != nil {
		return profileView{}, err
	}
	c := p.Config()
	return profileView{
		Name: profile.Name, MaxAttempts: c.MaxAttempts, MaxDeliveries: c.MaxDeliveries, MaxRedrives: c.MaxRedrives,
		OnExhausted: string(c.OnExhausted), Backoff: c.Backoff.String(), InPlace: profile.InPlace.String(),
		OnDuplicate: duplicateWords(profile.OnConflict), Breaker: profile.Breaker.String(), About: profile.About,
	}, nil
}

// settings are what a profile says beyond its policy.
func (v *profileView) settings() []policy.Setting {
	return []policy.Setting{
		{Name: "in_place", Value: v.InPlace, Meaning: "runs under one claim before a failure counts"},
		{Name: "on_duplicate", Value: v.OnDuplicate, Meaning: "what a producer gets for a taken dedupe key; nixie run always goes on"},
		{Name: "breaker", Value: v.Breaker, Meaning: "when failures in a row pause what fails; nixie run --breaker"},
	}
}

func duplicateWords(c nixie.Conflict) string {
	switch c {
	case nixie.FailOnConflict:
		return "error"
	case nixie.ReplaceExisting:
		return "replace"
	}
	return "existing"
}

func profileColumns() []column[profileView] {
	type v = profileView
	n := func(name, show string, value func(*v) int) column[v] {
		return column[v]{name: name, show: show, cell: func(p *v) string { return strconv.Itoa(value(p)) }, kind: number}
	}
	return []column[v]{
		{name: "name", show: asTable, cell: func(p *v) string { return p.Name }},
		n("max_attempts", asTable, func(p *v) int { return p.MaxAttempts }),
		n("max_deliveries", asWide, func(p *v) int { return p.MaxDeliveries }),
		n("max_redrives", asWide, func(p *v) int { return p.MaxRedrives }),
		{name: "on_exhausted", show: asWide, cell: func(p *v) string { return p.OnExhausted }},
		{name: "backoff", show: asTable, cell: func(p *v) string { return p.Backoff }},
		{name: "in_place", show: asWide, cell: func(p *v) string { return p.InPlace }},
		{name: "on_duplicate", show: asWide, cell: func(p *v) string { return p.OnDuplicate }},
		{name: "breaker", show: asWide, cell: func(p *v) string { return p.Breaker }},
		{name: "about", show: asTable, cell: func(p *v) string { return p.About }, kind: flex},
	}
}
