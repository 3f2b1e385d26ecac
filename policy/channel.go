package policy

import "github.com/nixie-go/nixie"

// ChannelReason returns the value of the header x-failure-reason on a dead letter channel. It
// follows from the class of the last failure and the cause of death:
//
//	permanent_error         permanent, at any attempt
//	transient_max_retries   transient, and the attempts are used up
//	unknown_max_retries     neither is known, and the attempts are used up
//
// For causes that such a channel does not know it returns the name of the cause.
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
