package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
)

// trailer begins the line of a merge commit that names its attempt: job, item and lease.
const trailer = "Nixie-Item: "

// trailerOf returns the beginning of all trailers of an item.
func (j *Job) trailerOf(item string) string { return trailer + j.name + "/" + refName(item) + "/" }

// ConflictError reports that the commits of an attempt conflict with those of others. The branch of
// the job is as it was.
type ConflictError struct {
	Ours   string   // tip of the job
	Theirs string   // commit of the attempt
	Files  []string // those in conflict
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("merge conflict of %s with %s in %s", e.Theirs, e.Ours, strings.Join(e.Files, ", "))
}

// Merge merges the attempt's commits into the branch of the job and returns the merge commit. An
// item that an attempt has merged already is not merged again. Without a commit of its own there is
// nothing to merge, and the answer is empty. A conflict is a [ConflictError] with
// [nixie.ReasonMergeConflict].
//
// A result, unless it is nil, is kept before the merge: a process that finds the item merged has
// its result too.
func (t *Tree) Merge(ctx context.Context, subject string, result json.RawMessage) (commit string, err error) {
	j := t.job
	head, err := t.Head(ctx)
	if err != nil {
		return "", err
	}
	j.merging.Lock()
	defer j.merging.Unlock()
	for tries := 0; ; tries++ {
		tip, done, err := j.branch.read(ctx, j, t.Item)
		if err != nil || done != "" {
			return done, err
		}
		commit, err := t.withAttempt(ctx, tip, head, subject)
		if err != nil {
			return "", err
		}
		if err := t.keepResult(head, result); err != nil || commit == tip {
			return "", err
		}
		moved, err := j.updateRef(ctx, commit, tip, tries)
		if err == nil && moved {
			j.branch.set(commit, j.trailerOf(t.Item))
			return commit, nil
		}
		j.branch.invalidate() // it may have moved all the same
		if err != nil {
			return "", errors.Join(err, t.dropResult(ctx))
		}
	}
}

// withAttempt merges the attempt's commits into the tip. It returns the tip itself when there are
// none or the tip has them.
func (t *Tree) withAttempt(ctx context.Context, tip, head, subject string) (string, error) {
	if head == t.Start {
		return tip, nil
	}
	if has, err := t.job.contains(ctx, tip, head); err != nil || has {
		return tip, err
	}
	return t.job.mergeCommit(ctx, tip, head, subject, fmt.Sprint(t.job.trailerOf(t.Item), t.Lease))
}

// Merged returns the commit that merged an item, from any of its attempts; empty means none.
func (j *Job) Merged(ctx context.Context, item string) (string, error) {
	_, done, err := j.branch.read(ctx, j, item)
	return done, err
}

// contains reports whether the history of tip contains head.
func (j *Job) contains(ctx context.Context, tip, head string) (bool, error) {
	s, code, err := j.git.exec(ctx, j.record.Common, nil, "merge-base", "--is-ancestor", head, tip)
	if err == nil && code > 1 {
		err = failed([]string{"merge-base"}, s)
	}
	return code == 0, err
}

// mergeCommit makes the merge commit. No branch refers to it yet.
func (j *Job) mergeCommit(ctx context.Context, tip, head, subject, mark string) (string, error) {
	s, code, err := j.git.filter(ctx, j.record.Common, "merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", tip, head)
	switch {
	case err != nil:
		return "", err
	case code == 1:
		files := fields(s.out)
		return "", nixie.WithReason(&ConflictError{tip, head, files[min(1, len(files)):]}, nixie.ReasonMergeConflict)
	case code != 0:
		return "", failed([]string{"merge-tree"}, s)
	}
	tree := fields(s.out)[0]
	message := strings.ToValidUTF8(strings.ReplaceAll(subject, "\x00", ""), "\uFFFD") + "\n\n" + mark + "\n"
	made, code, err := j.git.exec(ctx, j.record.Common, []byte(message), "-c", "user.name="+j.committer.name, "-c",
		"user.email="+j.committer.email, "commit-tree", tree, "-p", tip, "-p", head, "-F", "-")
	if err == nil && code != 0 {
		err = failed([]string{"commit-tree"}, made)
	}
	return made.out, err
}

// maxTries limits how often a merge is repeated because another process moved the branch or holds
// its lock. Git waits 100 ms for that lock.
const maxTries = 100

// updateRef moves the work of the job to a commit if it is still at from, and its branch with it.
// A branch that a user looks at, removed or moved stays behind, for [Job.Follow].
func (j *Job) updateRef(ctx context.Context, to, from string, tries int) (moved bool, err error) {
	move := fmt.Sprintf("update %s %s %s\n", j.ref(), to, from)
	if j.behind = j.behind || j.lookedAt(); !j.behind {
		both := move + fmt.Sprintf("update %s %s %s\n", j.branchRef(), to, from)
		_, code, err := j.git.exec(ctx, j.record.Common, []byte(both), "update-ref", "-m", "nixie", "--stdin")
		if err != nil || code == 0 {
			return err == nil, err
		}
		j.behind = true
	}
	s, code, err := j.git.exec(ctx, j.record.Common, []byte(move), "update-ref", "-m", "nixie", "--stdin")
	switch {
	case err != nil:
		return false, err
	case code == 0:
		return true, nil
	case tries < maxTries && (strings.Contains(s.err, "but expected") || strings.Contains(s.err, "Unable to create")):
		return false, ctx.Err() // another process moved it, or is about to
	}
	return false, failed([]string{"update-ref"}, s)
}

// identity is the committer of a merge.
type identity struct{ name, email string }

// committer asks the user's own settings and environment.
func (g *git) committer(ctx context.Context, dir string, environ []string) identity {
	own := *g
	own.environ = append(withoutRepository(environ), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	said, err := own.call(ctx, dir, "var", "GIT_COMMITTER_IDENT")
	name, rest, named := strings.Cut(said, " <")
	email, _, ended := strings.Cut(rest, "> ")
	if err != nil || !named || !ended {
		return identity{"nixie", "nixie@localhost"}
	}
	return identity{name, email}
}
