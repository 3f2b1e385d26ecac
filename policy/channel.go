package policy

import "github.com/nixie-go/nixie"

// ChannelReason is what a dead letter channel calls the end of a message whose
// last failure had the class: the value of the header x-failure-reason.
//
//	permanent_error         permanent, at whatever attempt
//	transient_max_retries   transient, and its attempts are used up
//	unknown_max_retries     neither is known, and its attempts are used up
//
// Causes that such a channel does not know go by our own words.
func ChannelReason(class nixie.Class, cause nixie.Cause) string {
	switch {
	case cause == nixie.CausePermanent:
		return "permanent_error"
	case cause != nixie.CauseExhausted:
		return string(cause)
	case class == nixie.ClassTransient:
		return "transient_max_retries"
	}
	return "unknown_max_retries"
}
