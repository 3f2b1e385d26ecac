package lifecycle

import "github.com/nixie-go/nixie"

// StepsOf returns the steps that the history shows for a failure: those that the failure names, or
// else the steps known to be done.
func StepsOf(f *nixie.Failure, known []string) []string {
	if f.Steps != nil {
		return f.Steps
	}
	return known
}
