package office

import (
	"context"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// policyEdit holds options of a queue's policy with their new values; no value resets one.
type policyEdit map[string][]string

// isPolicy reports whether a setting is an option of the policy.
func isPolicy(name string) bool {
	_, err := policy.Document{}.With(name)
	return err == nil
}

// add takes one value of an option. The entries of a list come one by one, and replace those that
// were set.
func (e policyEdit) add(name, value string) error {
	values, again := e[name]
	if value == defaultValue {
		value = ""
	}
	switch {
	case again && (!policy.IsList(name) || value == "" || len(values) == 0):
		return nixie.Errorf(nixie.CodeInvalid, "setting %s is given twice: give it once", name)
	case value != "":
		values = append(values, value)
	}
	e[name] = values
	_, err := policy.Document{}.With(name, values...)
	return err
}

// apply changes the policy of a queue.
func (e policyEdit) apply(q *nixie.QueueSettings) error {
	if len(e) == 0 {
		return nil
	}
	d, err := policy.ParseDocument(q.Policy)
	if err != nil {
		return err
	}
	for name, values := range e {
		if d, err = d.With(name, values...); err != nil {
			return err
		}
	}
	if _, err := d.Policy(); err != nil {
		return err
	}
	q.Policy = d.String()
	return nil
}

// policyLines returns the options that are set for a queue, NAME=VALUE.
func policyLines(q nixie.QueueSettings) []string {
	if q.Policy == "" {
		return []string{}
	}
	return strings.Split(q.Policy, "\n")
}

// Policy returns the policy of a queue's workers that have no policy of their own.
func (o *Office) Policy(ctx context.Context, queue string) (*policy.Policy, error) {
	d, err := o.PolicyDocument(ctx, queue)
	if err != nil {
		return nil, err
	}
	return d.Policy()
}
