package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// failingGit is a git whose n-th call fails, and all later ones, before or after the call has its
// effect. A file holds the count.
const failingGit = `#!/bin/sh
n=$(($(cat "$COUNT") + 1)); echo $n > "$COUNT"
if [ $n -gt $AT ] || [ $n -eq $AT -a $LATE = no ]; then echo down >&2; exit 3; fi
git "$@"; code=$?
if [ $n -eq $AT ]; then echo down >&2; exit 3; fi
exit $code
`

// Any one call of git fails, before or after it had its effect. A process that repeats the work
// ends as if nothing had failed. One item is merged once, the worktree of the other is kept, and
// the user's checkout has the branch.
func TestEachCallFails(t *testing.T) {
	for _, late := range []string{"no", "yes"} {
		t.Run("late "+late, func(t *testing.T) {
			t.Parallel()
			for at, reached := 1, true; reached; at++ {
				b := newBench(t)
				tool, count := b.repo+"-bin/git", b.repo+"-bin/count"
				b.write(b.repo+"-bin", "git", failingGit)
				b.write(b.repo+"-bin", "count", "0")
				b.must(os.Chmod(tool, 0o755))
				err := b.runJob(1, func(c *Config) {
					c.Git, c.Environ = tool, append(c.Environ, "COUNT="+count, fmt.Sprint("AT=", at), "LATE="+late)
				})
				said, _ := os.ReadFile(count)
				var calls int
				_, _ = fmt.Sscan(string(said), &calls)
				if reached = calls >= at; reached == (err == nil) {
					t.Errorf("%d calls, of which those from %d on failed: %v", calls, at, err)
				}
				if err := b.runJob(2, nil); err != nil {
					t.Fatalf("after call %d had failed: %v", at, err)
				}
				b.told(at)
			}
		})
	}
}

// runJob runs a job of two items up to its delivery. It returns the first error and cleans nothing
// up, as if its process had been killed.
func (b *bench) runJob(lease int64, change func(*Config)) (err error) {
	ctx := b.t.Context()
	j, err := Open(ctx, b.config(change))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if done, err := j.Merged(ctx, "good"); err != nil {
		return err
	} else if done == "" {
		if err := b.good(ctx, j, lease); err != nil {
			return err
		}
	}
	bad, err := j.Attempt(ctx, "bad", lease)
	if err != nil {
		return err
	}
	b.write(bad.Path, "readme", "not finished\n")
	if _, err := bad.Keep(ctx); err != nil {
		return err
	}
	return j.Deliver(ctx)
}

func (b *bench) good(ctx context.Context, j *Job, lease int64) error {
	good, err := j.Attempt(ctx, "good", lease)
	if err != nil {
		return err
	}
	b.work(good, "src/a/code", "good\n")
	if _, err := good.Merge(ctx, "item good", json.RawMessage(`"result"`)); err != nil {
		return err
	}
	good.Release()
	return nil
}

// told checks the end of a job.
func (b *bench) told(at int) {
	b.t.Helper()
	if n := b.git(b.repo, "log", "--format=%s", "--grep", "^item good$", "main"); n != "item good" {
		b.t.Errorf("call %d: merged as %q", at, n)
	}
	if b.git(b.repo, "show", "main:src/a/code") != "good" || b.git(b.repo, "status", "--porcelain") != "" {
		b.t.Errorf("call %d: the checkout is not as it should be", at)
	}
	results := 0
	for r, err := range b.known().Results() {
		if results++; err != nil || r.Item != "good" || results > 1 {
			b.t.Errorf("call %d: result %+v, %v", at, r, err)
		}
	}
	if results == 0 {
		b.t.Errorf("call %d: the result is not there", at)
	}
	j := b.open(nil)
	kept, err := j.Kept()
	if err != nil || len(kept) == 0 {
		b.t.Errorf("call %d: kept %v, %v", at, kept, err)
	}
	for _, k := range kept {
		if raw, err := os.ReadFile(filepath.Join(k.Path, "readme")); err != nil || string(raw) != "not finished\n" {
			b.t.Errorf("call %d: %s has %q, %v", at, k.Path, raw, err)
		}
	}
	b.must(j.Clean(b.t.Context(), false))
	if refs, trees := b.git(b.repo, "for-each-ref", "--format=%(refname)"), b.git(b.repo, "worktree", "list"); refs != "refs/heads/main" ||
		strings.Contains(trees, "\n") {
		b.t.Errorf("call %d: left %s, %s", at, refs, trees)
	}
}

// A full disk has another reason than a broken worktree.
func TestNoRoom(t *testing.T) {
	err := failed([]string{"checkout"}, output{err: "fatal: cannot write: No space left on device"})
	if reason := nixie.OutcomeOf(err).Reason; reason != nixie.ReasonResource {
		t.Errorf("reason %s", reason)
	}
	if reason := nixie.OutcomeOf(failed([]string{"checkout"}, output{err: "fatal: x"})).Reason; reason != nixie.ReasonWorktree {
		t.Errorf("reason %s", reason)
	}
}
