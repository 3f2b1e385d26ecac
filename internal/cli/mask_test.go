package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
)

func TestR24_ShownMasked(t *testing.T) { scripts(t, "R24_*") }

// makeSecrets makes a store of a program that used no mask: a letter with
// secrets in its header, body and failure, and one without.
func makeSecrets(ts *testscript.TestScript, _ bool, _ []string) {
	ctx := context.Background()
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return noon }})
	ts.Check(err)
	const leak = "password=hunter2ghi"
	for i, c := range []struct {
		headers []nixie.Header
		body    string
		failure nixie.Failure
	}{
		{
			[]nixie.Header{{Name: "authorization", Value: "Bearer hunter2abc"}, {Name: "request-id", Value: "r-1"}},
			`{"api_key":"hunter2def","amount":20}`,
			nixie.Failure{Text: "login " + leak, Context: []string{"pay", leak},
				Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte(leak)}}},
		},
		{nil, `{"amount":30}`, nixie.Failure{Text: "no route"}},
	} {
		id, err := nixie.ParseID(fmt.Sprintf("01970000-0000-7000-8000-%012d", i+1))
		ts.Check(err)
		_, err = st.Enqueue(ctx, nixie.Message{ID: id, Queue: "payments", Key: fmt.Sprintf("pay-%d", i+1), Body: []byte(c.body),
			Headers: c.headers})
		ts.Check(err)
		ds, err := st.Claim(ctx, "payments", nixie.Want{Max: 1})
		ts.Check(err)
		f := c.failure
		f.Class, f.Reason, f.Generation, f.Attempt, f.Decision = nixie.ClassUnknown, nixie.ReasonHandler, 1, 1, nixie.Bury
		f.StartedAt, f.FailedAt = noon, noon
		ts.Check(errors.Join(st.Settle(ctx, []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury, Failure: &f, Burial: &nixie.Burial{
			Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "handler: " + f.Text, Fingerprint: "v1-000000000000000d",
			Redrivable: true, Rule: "reason:handler",
		}}})...))
	}
	ts.Check(st.Close())
}
