package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// threeCauses are errors that name the user of a message.
var threeCauses = []string{
	"card of user %s was declined: insufficient funds",
	"charge failed: account %s is closed",
	"cannot send the invoice to %s: email address missing",
}

// threeStatuses and threeKinds are values of bodies that have the words of the errors.
var (
	threeStatuses = []string{"declined", "closed", "failed", "missing", "pending"}
	threeKinds    = []string{"card", "account", "invoice", "charge", "email"}
)

// Letters of three causes are three lines for all users: the names are of letters only,
// and the bodies also have words that the errors are made of. A redrive of one line moves its
// letters and no others.
func TestThreeCauses(t *testing.T) {
	t.Parallel()
	proof.Run(t, "three-causes", func(t *testing.T, seed uint64) int {
		where := "sqlite://" + filepath.Join(t.TempDir(), "s.db")
		letters := proof.Count("three-causes")
		dieOfThreeCauses(t, where, letters, seed)
		groups := analyzed(t, where).Groups
		if len(groups) != len(threeCauses) {
			for _, g := range groups[:min(len(groups), 10)] {
				t.Log(g.Count, g.Signature)
			}
			t.Fatalf("%d lines for %d causes", len(groups), len(threeCauses))
		}
		moved := groups[1]
		said := ran(t, "dlq", "redrive", "--filter", moved.Filter, "--reason", "r", "--yes", "--store", where)
		want := fmt.Sprintf("%[1]d of %[1]d letters redriven", moved.Count)
		if !strings.Contains(strings.ReplaceAll(string(said), ",", ""), want) {
			t.Errorf("it said %s, want %s", said, want)
		}
		left := analyzed(t, where).Groups
		if len(left) != 2 || left[0].Fingerprint != groups[0].Fingerprint || left[0].Count != groups[0].Count ||
			left[1].Fingerprint != groups[2].Fingerprint || left[1].Count != groups[2].Count {
			t.Errorf("left %+v of %+v", left, groups)
		}
		return letters
	})
}

// ran runs a command to its end.
func ran(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }, Now: time.Now}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	if code := exitCode(s, root.ExecuteContext(t.Context())); code != ExitOK {
		t.Fatalf("%v: exit code %d: %s%s", args, code, out.Bytes(), errs.Bytes())
	}
	return out.Bytes()
}

func analyzed(t *testing.T, where string) (a office.Analysis) {
	t.Helper()
	if err := json.Unmarshal(ran(t, "dlq", "analyze", "--filter", "status:open", "-o", "json", "--store", where), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// dieOfThreeCauses fills a store with letters. The causes have different numbers of them.
func dieOfThreeCauses(t *testing.T, where string, letters int, seed uint64) {
	t.Helper()
	st, err := app.OpenStore(where, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 1))
	var batch []nixie.Message
	for i := range letters {
		body, err := json.Marshal(map[string]any{
			"user": nameOfLetters(random), "cause": []int{0, 0, 0, 1, 1, 2}[i%6],
			"status": threeStatuses[random.IntN(len(threeStatuses))], "kind": threeKinds[random.IntN(len(threeKinds))],
		})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, nixie.Message{Queue: "mails", Body: body})
		if len(batch) == 1000 || i == letters-1 {
			if _, err := st.Enqueue(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	once, err := policy.New(policy.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "mails"), Policy: once, Until: worker.Until{Idle: true}, Breaker: policy.BreakerRules{Failures: -1},
		Logger: slog.New(slog.DiscardHandler),
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
			var body struct {
				User  string
				Cause int
			}
			if err := json.Unmarshal(d.Body, &body); err != nil {
				return err
			}
			return fmt.Errorf(threeCauses[body.Cause], body.User)
		}),
	})
	if err == nil {
		err = w.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// nameOfLetters draws a name such as Tarelon. A shorter one could be a word of the errors.
func nameOfLetters(random *rand.Rand) string {
	var name []byte
	for range 3 + random.IntN(2) {
		name = append(name, "bcdfghjklmnprstvz"[random.IntN(17)], "aeiou"[random.IntN(5)])
	}
	name[0] -= 'a' - 'A'
	return string(append(name, 'n'))
}
