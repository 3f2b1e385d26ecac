package office

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// ProfileView shows a profile of policies. Policy profiles prints it.
type ProfileView struct {
	Name          string `json:"name"`
	MaxAttempts   int    `json:"max_attempts"`
	MaxDeliveries int    `json:"max_deliveries"`
	MaxRedrives   int    `json:"max_redrives"`
	OnExhausted   string `json:"on_exhausted"`
	Backoff       string `json:"backoff"`
	InClaim       string `json:"in_place"`
	OnDuplicate   string `json:"on_duplicate"`
	Breaker       string `json:"breaker"`
	About         string `json:"about"`
}

// ViewProfile makes the view of a profile; the empty name is the default one.
func ViewProfile(name string) (ProfileView, error) {
	profile, err := policy.ProfileNamed(name)
	if err != nil {
		return ProfileView{}, err
	}
	p, err := policy.New(policy.Config{Profile: name})
	if err != nil {
		return ProfileView{}, err
	}
	c := p.Config()
	return ProfileView{
		Name: profile.Name, MaxAttempts: c.MaxAttempts, MaxDeliveries: c.MaxDeliveries, MaxRedrives: c.MaxRedrives,
		OnExhausted: string(c.OnExhausted), Backoff: c.Backoff.String(), InClaim: profile.InClaim.String(),
		OnDuplicate: duplicateWords(profile.OnConflict), Breaker: profile.Breaker.String(), About: profile.About,
	}, nil
}

// Table lists the values of a profile that its policy does not have.
func (v *ProfileView) Table() []policy.Row {
	return []policy.Row{
		{Name: "in_place", Value: v.InClaim, Meaning: "runs under one claim before a failure counts"},
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

// Profiles lists the names of all profiles, the default one first.
func Profiles() []string { return policy.Profiles() }

// ProfileDocument returns the policy that has the values of a profile and nothing else.
func ProfileDocument(name string) (policy.Document, error) {
	if name == "" {
		return policy.Document{}, nil
	}
	return policy.Document{}.With("profile", name)
}

// PolicyDocument returns the options of a queue's policy, for workers that have no policy of their
// own.
func (o *Office) PolicyDocument(ctx context.Context, queue string) (policy.Document, error) {
	q, err := o.Queue(ctx, queue)
	if err != nil {
		return policy.Document{}, err
	}
	return policy.ParseDocument(q.Settings.Policy)
}

// PolicyTable lists the values of a policy with what each means, those of its profile at the end.
func PolicyTable(d policy.Document) ([]policy.Row, error) {
	p, err := d.Policy()
	if err != nil {
		return nil, err
	}
	known, err := ViewProfile(p.Config().Profile)
	return append(p.Table(), known.Table()...), err
}

// RuleMeaning says when a rule of a verdict holds and what follows; "" for a name that no rule has.
func RuleMeaning(name string) string {
	for _, r := range policy.DecisionRules() {
		if r.Name == name {
			return r.Meaning
		}
	}
	return ""
}
