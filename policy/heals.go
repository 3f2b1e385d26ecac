package policy

import "github.com/nixie-go/nixie"

// Heals reports whether time may heal what a failure tells: something that the work needs is away,
// slow or full, or the handler says that it is transient.
func Heals(f *nixie.Failure) bool {
	switch {
	case passes(f.Reason):
		return f.Class != nixie.ClassPermanent
	case f.Reason == nixie.ReasonHandler, f.Reason == nixie.ReasonCommandFailed, f.Reason == nixie.ReasonUnknown:
		return f.Class == nixie.ClassTransient
	}
	return false
}

// passes reports whether time may heal the causes of a reason.
func passes(r nixie.Reason) bool {
	switch r {
	case nixie.ReasonTransportUnavailable, nixie.ReasonDependency, nixie.ReasonTimeout, nixie.ReasonThrottled, nixie.ReasonResource:
		return true
	}
	return false
}
