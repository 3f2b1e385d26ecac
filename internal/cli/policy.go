package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
)

func newPolicy(g *globals) *cobra.Command {
	return g.family("policy", newPolicyShow(g), newPolicyProfiles(g), newPolicySimulate(g))
}

func newPolicyShow(g *globals) *cobra.Command {
	var profile, queue string
	var cmd *cobra.Command
	cmd = g.command(g.described("policy show"), func(ctx context.Context, _ []string) error {
		if queue == "" {
			return g.showPolicy(policy.New(policy.Config{Profile: profile}))
		}
		if cmd.Flags().Changed("profile") {
			return usagef("--queue has a profile of its own: leave --profile out")
		}
		return g.visit(func(o *office.Office) error { return g.showPolicy(o.Policy(ctx, queue)) })
	})
	cmd.Flags().StringVar(&profile, "profile", policy.DefaultProfile, "set of policy values")
	cmd.Flags().StringVar(&queue, "queue", "", "queue whose policy is shown, as its workers go by it")
	return cmd
}

// showPolicy prints the values of a policy, and the limits that no policy changes.
func (g *globals) showPolicy(p *policy.Policy, err error) error {
	if err != nil {
		return err
	}
	known, err := office.ViewProfile(p.Config().Profile)
	known.InClaim = p.Config().InClaim.String()
	return listed(g, "", []column[policy.Row]{{name: "name"}, {name: "value", kind: prose}, {name: "meaning", kind: prose}})(
		slices.Concat(p.Table(), known.Table(), limits()), err)
}

// limits lists the limits that no policy changes.
func limits() []policy.Row {
	n := strconv.Itoa
	return []policy.Row{
		{Name: "dedupe_scope", Value: string(nixie.DedupeActive),
			Meaning: "how long a dedupe key is held, unless the queue says otherwise"},
		{Name: "min_lease", Value: nixie.MinLease.String(), Meaning: "shortest claim that can be asked for"},
		{Name: "max_lease", Value: nixie.MaxLease.String(), Meaning: "longest claim that can be asked for"},
		{Name: "body", Value: n(nixie.MaxBody), Meaning: "bytes of a body"},
		{Name: "headers", Value: n(nixie.MaxHeaders), Meaning: "bytes of all headers of a message"},
		{Name: "name", Value: n(nixie.MaxName), Meaning: "bytes of a queue, type, key, stream or dedupe key"},
		{Name: "steps", Value: n(nixie.MaxSteps), Meaning: "named steps of a message"},
		{Name: "batch", Value: n(nixie.MaxBatch), Meaning: "messages or settlements in one call"},
		{Name: "batch_bytes", Value: n(nixie.MaxBatchBytes), Meaning: "bytes of the bodies in one call"},
		{Name: "filter_text", Value: n(filter.MaxText), Meaning: "bytes of a filter"},
		{Name: "filter_terms", Value: n(filter.MaxTerms), Meaning: "terms of a filter"},
		{Name: "redrive_batch", Value: n(redrive.DefaultBatch), Meaning: "letters of an operation in one commit"},
		{Name: "list", Value: n(defaultLimit), Meaning: "rows that a list shows without --limit"},
	}
}

func newPolicyProfiles(g *globals) *cobra.Command {
	return g.command(g.described("policy profiles"), func(context.Context, []string) error {
		return rows(g, "", []column[office.ProfileView]{
			{name: "name"}, {name: "max_attempts"}, {name: "max_deliveries", show: asWide}, {name: "max_redrives", show: asWide},
			{name: "on_exhausted", show: asWide}, {name: "backoff"},
			{name: "in_claim", show: asWide, cell: func(v *office.ProfileView) string { return v.InClaim }},
			{name: "on_duplicate", show: asWide},
			{name: "breaker", show: asWide}, {name: "about", kind: prose},
		}, func(yield func(office.ProfileView, error) bool) {
			for _, name := range policy.Profiles() {
				if !yield(office.ViewProfile(name)) {
					return
				}
			}
		})
	})
}
