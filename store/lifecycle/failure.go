package lifecycle

import "github.com/nixie-go/nixie"

// StepsOf are the steps that the history shows beside a failure: those that it names, else
// those that were known to be done.
func StepsOf(f *nixie.Failure, known []string) []string {
	if f.Steps != nil {
		return f.Steps
	}
	return known
}
