package loop

import "github.com/nixie-go/nixie"

// The errors of mailboxes, for errors.Is. An error also has the [nixie.Code] of its cause. The
// profile wink of package policy knows them by their names.
var (
	ErrReceiptHandleExpired error = &kind{"ReceiptHandleExpiredError", "receipt handle has expired"}
	ErrMailboxFull          error = &kind{"MailboxFullError", "mailbox is full"}
	ErrSerialization        error = &kind{"SerializationError", "body cannot be encoded or decoded"}
	ErrConnection           error = &kind{"MailboxConnectionError", "mailbox cannot be reached"}
	ErrReplyNotAvailable    error = &kind{"ReplyNotAvailableError", "message cannot be answered"}
	ErrMessageFinalized     error = &kind{"MessageFinalizedError", "message is finalized"}
	ErrResolution           error = &kind{"MailboxResolutionError", "mailbox name cannot be resolved"}
	ErrInvalidParameter     error = &kind{"InvalidParameterError", "parameter is invalid"}
)

// kind is a kind of errors.
type kind struct{ name, text string }

func (k *kind) Error() string { return k.text }

// ErrorName tells policy the name of the error.
func (k *kind) ErrorName() string { return k.name }

// mailboxError is an error of a kind.
type mailboxError struct{ kind, err error }

func (e *mailboxError) Error() string   { return e.err.Error() }
func (e *mailboxError) Unwrap() []error { return []error{e.kind, e.err} }

func fail(kind error, code nixie.Code, format string, args ...any) error {
	return &mailboxError{kind, nixie.Errorf(code, format, args...)}
}

func invalid(format string, args ...any) error {
	return fail(ErrInvalidParameter, nixie.CodeInvalid, format, args...)
}

// explain gives an error of a store or broker its kind.
func explain(err error) error {
	switch nixie.CodeOf(err) {
	case nixie.CodeLeaseLost:
		return &mailboxError{ErrReceiptHandleExpired, err}
	case nixie.CodeLimit:
		return &mailboxError{ErrMailboxFull, err}
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown:
		return &mailboxError{ErrConnection, err}
	case nixie.CodeInvalid:
		return &mailboxError{ErrInvalidParameter, err}
	}
	return err
}
