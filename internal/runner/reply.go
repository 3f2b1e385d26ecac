package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Answers says what becomes of messages whose sender wants an answer.
type Answers struct {
	Ignore bool // their commands run, and no one is answered

	// Make makes the answer of a command that has succeeded, which is body, or of a message that
	// has died, with failed set. Nil, unless Ignore: the first such message stops the work.
	Make func(d *nixie.Delivery, body []byte, failed string) (nixie.Message, error)
}

// errUnanswered stops a runner that was not told what to do with answers. The message is given back
// with its attempt.
var errUnanswered = errors.New("its sender wants an answer")

// wantsAnswer reports whether a message names a mailbox for its answer that is not ignored.
func (r *Runner) wantsAnswer(d *nixie.Delivery) bool {
	return !r.c.Answers.Ignore && d.Header(store.HeaderReplyTo) != ""
}

// unanswered ends the work at a message that nothing would answer.
func (r *Runner) unanswered(d *nixie.Delivery) error {
	err := nixie.Errorf(nixie.CodeInvalid, "message %s of %s was given back: %w in mailbox %s: give --reply to send "+
		"what the command prints, or --no-reply to send nothing", d.ID, d.Queue, errUnanswered, d.Header(store.HeaderReplyTo))
	r.stop(err)
	return nixie.Verdict(nixie.Release, err)
}

// stoppedUnanswered returns the error of a runner that stopped at such a message, or nil.
func (r *Runner) stoppedUnanswered() error {
	if why := r.whyHalted(); errors.Is(why, errUnanswered) {
		return why
	}
	return nil
}

// resultPath is the file of the result of an attempt.
func (a *attempt) resultPath() string {
	return a.verdicts + "/" + a.d.ID.String() + "-" + strconv.FormatInt(a.d.Lease.Number, 10) + ".result"
}

// answer lets the answer of the command follow its success. What cannot be sent is not the fault of
// an attempt, and another one would not help.
func (a *attempt) answer() error {
	if !a.wantsAnswer(a.d) {
		return nil
	}
	body, err := a.result()
	if err != nil {
		return nixie.WithReason(nixie.Permanent(err), nixie.ReasonValidation)
	}
	m, err := a.c.Answers.Make(a.d, body, "")
	if err == nil {
		err = a.d.Then(m)
	}
	return nixie.Permanent(err)
}

// result reads the result: the file that the command has written, or what it has printed.
func (a *attempt) result() ([]byte, error) {
	from := a.printed.Stdout.Reader()
	if info, err := os.Lstat(a.resultPath()); err == nil {
		if !info.Mode().IsRegular() {
			return nil, nixie.Errorf(nixie.CodeInvalid, "$NIXIE_RESULT_FILE is no regular file: write the result into it")
		}
		file, err := os.Open(a.resultPath())
		if err != nil {
			return nil, err
		}
		defer os.Remove(a.resultPath()) //nolint:errcheck // a leftover is small and unused
		defer file.Close()              //nolint:errcheck // it was only read
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, nixie.MaxBody+1))
	if err == nil && len(body) > nixie.MaxBody {
		err = nixie.Errorf(nixie.CodeLimit, "the answer has more than %d bytes, the limit: print less, or write to $NIXIE_RESULT_FILE",
			nixie.MaxBody)
	}
	return body, err
}

// refusedAnswer reports whether the attempt failed because its answer was refused: the queue is
// closed, or there is no such channel.
func refusedAnswer(d *nixie.Delivery, f *nixie.Failure) bool {
	var told *nixie.Error
	return f != nil && len(d.Tracking.Then) > 0 && errors.As(f.Err, &told) && told.Queue != "" &&
		told.Queue == d.Header(store.HeaderReplyTo)
}

// tellSender lets the error of a message that dies follow its end.
func (r *Runner) tellSender(st *nixie.Settlement) {
	how := "Dead-lettered"
	d := st.Delivery
	switch {
	case st.Verb == nixie.Discard:
		how = "Rejected"
	case st.Burial == nil:
		return
	}
	if !r.wantsAnswer(d) || r.c.Answers.Make == nil || st.Failure == nil {
		return
	}
	m, err := r.c.Answers.Make(d, nil, fmt.Sprintf("%s after %d attempts: %s", how, d.Attempts+d.Crashes, st.Failure.Text))
	if err != nil {
		r.c.Warn("message %s died, and its sender cannot be told: %v", d.ID, err)
		return
	}
	st.Then = append(st.Then, m)
}
