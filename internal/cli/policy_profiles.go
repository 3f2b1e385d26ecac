package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

func newPolicyProfiles(g *globals) *cobra.Command {
	return g.command(&cobra.Command{
		Use:   "profiles",
		Short: "List the sets of values that a policy can start from",
		Example: `  nixie policy profiles
  nixie policy profiles -o wide
  nixie policy show --profile wink`,
	}, func(context.Context, []string) error {
		return rows(g, "", []column[profileView]{
			{name: "name"}, {name: "max_attempts"}, {name: "max_deliveries", show: asWide}, {name: "max_redrives", show: asWide},
			{name: "on_exhausted", show: asWide}, {name: "backoff"}, {name: "in_place", show: asWide}, {name: "on_duplicate", show: asWide},
			{name: "breaker", show: asWide}, {name: "about", kind: flex},
		}, func(yield func(profileView, error) bool) {
			for _, name := range policy.Profiles() {
				if !yield(viewProfile(name)) {
					return
				}
			}
		})
	})
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
