package privacy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/privacy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// leaks are errors with a secret, by the key of the message whose handler returns them.
func leaks() map[string]string {
	return map[string]string{
		"url":    "dial postgres://app:Tr0ub4dor-url@db/x: refused",
		"pair":   "login failed, PASSWORD=Tr0ub4dor-pair",
		"json":   `body {"client_secret":"Tr0ub4dor json"} refused`,
		"header": "sent Authorization: Bearer Tr0ub4dor-header",
		"token":  "push as ghp_Tr0ub4dor0token0123456789abcdefghijkl denied",
		"pem":    "read -----BEGIN RSA PRIVATE KEY-----\nTr0ub4dorPEM\n-----END RSA PRIVATE KEY-----",
		"value":  "the vault said Tr0ub4dor~value, plainly",
		"panic":  "token=Tr0ub4dor-panic",
	}
}

const leak = "Tr0ub4dor"

// A worker with a mask leaves no secret of an error anywhere. The bytes of the store, the observer
// and the groups have none.
func TestR24_MaskingLeavesNoSecretInTheStore(t *testing.T) {
	folder := t.TempDir()
	st, err := sqlite.Open(filepath.Join(folder, "n.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key := range leaks() {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	seen := work(t, st, privacy.Mask{privacy.Values(leak + "~value"), privacy.Secrets})
	noLeak(t, "the observer", []byte(seen))
	groups, _, err := st.Count(t.Context(), nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint},
		Scan: store.ScanAll, Described: true})
	if err != nil || len(groups[0]) != len(leaks()) {
		t.Fatalf("%d groups, want %d, %v", len(groups[0]), len(leaks()), err)
	}
	noLeak(t, "the groups", []byte(fmt.Sprintf("%+v", groups)))
	files := filesOf(t, folder)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		noLeak(t, name, data)
	}
	for name, data := range filesOf(t, folder) {
		noLeak(t, name, data)
	}
}

// Without a mask all secrets are there, so the test above can fail.
func TestR24_WithoutMaskTheTextsStay(t *testing.T) {
	folder := t.TempDir()
	st, err := sqlite.Open(filepath.Join(folder, "n.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key := range leaks() {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	seen := work(t, st, nil)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, data := range filesOf(t, folder) {
		all = append(all, data...)
	}
	for key, text := range leaks() {
		if !strings.Contains(seen, text) || !bytes.Contains(all, []byte(text)) {
			t.Errorf("%s is not there", key)
		}
	}
}

// work lets every message die of its leak and returns the output of an observer.
func work(t *testing.T, st store.Store, mask privacy.Mask) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var seen strings.Builder
	settled := 0
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "q"), Mask: mask.Failure,
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
			text := leaks()[d.Key]
			if d.Key == "panic" {
				panic(text)
			}
			return nixie.WithEvidence(nixie.Permanent(fmt.Errorf("deliver: %w", errors.New(text))), nixie.Failure{
				Stack: text, Context: []string{text}, LogLocation: text, Step: text,
				Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte(text)}},
			})
		}),
		Policy: once(t),
		Observer: &nixie.Observer{
			Settled: func(_ string, sts []nixie.Settlement, _ []error) {
				mu.Lock()
				defer mu.Unlock()
				for _, s := range sts {
					fmt.Fprintf(&seen, "%v %+v %+v\n", s.Failure.Err, *s.Failure, s.Burial)
				}
				if settled += len(sts); settled == len(leaks()) {
					cancel()
				}
			},
			Trouble: func(_ string, err error) { t.Error(err) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil || settled != len(leaks()) {
		t.Fatalf("%d settled, %v", settled, err)
	}
	return seen.String()
}

// once makes a policy without retries.
func once(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func noLeak(t *testing.T, where string, data []byte) {
	t.Helper()
	if at := bytes.Index(data, []byte(leak)); at >= 0 {
		t.Errorf("%s: %q", where, data[max(0, at-80):min(len(data), at+40)])
	}
}

func filesOf(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(folder, "n.db*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil {
			files[filepath.Base(name)] = data
		}
	}
	return files
}
