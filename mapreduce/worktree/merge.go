package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
)

// trailer names in a merge the attempt that it is of: job, item and lease.
const trailer = "Nixie-Item: "

// of is what the trailers of an item begin with.
func (j *Job) of(item string) string { return trailer + j.name + "/" + refName(item) + "/" }

// ConflictError says that what an attempt did and what others did cannot be joined. The
// branch of the job is as it was.
type ConflictError struct {
	Ours   string   // tip of the job
	Theirs string   // commit of the attempt
	Files  []string // those in conflict
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("merge conflict of %s with %s in %s", e.Theirs, e.Ours, strings.Join(e.Files, ", "))
}

// Merge joins what the attempt has committed with the branch of the job, and returns the
// commit that did it. An item that is merged already, be it by an earlier attempt, is not
// merged again. Without a commit of its own there is nothing to merge, and the answer is
// empty. What cannot be joined is a [ConflictError] of [nixie.ReasonMergeConflict].
//
// A result, unless it is nil, is kept before: whoever finds the item merged has it.
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
		commit, err := t.joined(ctx, tip, head, subject)
		if err != nil {
			return "", err
		}
		if err := t.keepResult(head, result); err != nil || commit == tip {
			return "", err
		}
		moved, err := j.move(ctx, commit, tip, tries)
		if err == nil && moved {
			j.branch.move(commit, j.of(t.Item))
			return commit, nil
		}
		j.branch.forget() // it may have moved all the same
		if err != nil {
			return "", errors.Join(err, t.dropResult(ctx))
		}
	}
}

// joined is the tip with what the attempt has committed: the tip itself, if that is nothing
// or there already.
func (t *Tree) joined(ctx context.Context, tip, head, subject string) (string, error) {
	if head == t.Start {
		return tip, nil
	}
	if has, err := t.job.has(ctx, tip, head); err != nil || has {
		return tip, err
	}
	return t.job.join(ctx, tip, head, subject, fmt.Sprint(t.job.of(t.Item), t.Lease))
}

// Merged finds the commit that merged an item, by whichever of its attempts; empty is none.
func (j *Job) Merged(ctx context.Context, item string) (string, error) {
	_, done, err := j.branch.read(ctx, j, item)
	return done, err
}

// has reports whether a commit is part of another.
func (j *Job) has(ctx context.Context, tip, head string) (bool, error) {
	s, code, err := j.git.ask(ctx, j.note.Common, nil, "merge-base", "--is-ancestor", head, tip)
	if err == nil && code > 1 {
		err = failed([]string{"merge-base"}, s)
	}
	return code == 0, err
}

// join makes the merge, as an object that nothing refers to yet.
func (j *Job) join(ctx context.Context, tip, head, subject, mark string) (string, error) {
	s, code, err := j.git.ask(ctx, j.note.Common, nil, "merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", tip, head)
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
	made, code, err := j.git.ask(ctx, j.note.Common, []byte(message), "-c", "user.name="+j.who.name, "-c", "user.email="+j.who.email, "commit-tree", tree, "-p", tip, "-p", head, "-F", "-")
	if err == nil && code != 0 {
		err = failed([]string{"commit-tree"}, made)
	}
	return made.out, err
}

// maxTries is how often a merge is made anew because somebody else moved the branch, or has
// the lock of it, for which git waits 100 ms.
const maxTries = 100

// move makes a commit the tip of the branch, if that is still where it was.
func (j *Job) move(ctx context.Context, to, from string, tries int) (moved bool, err error) {
	s, code, err := j.git.ask(ctx, j.note.Common, nil, "update-ref", "-m", "nixie", "refs/heads/"+j.Branch(), to, from)
	switch {
	case err != nil:
		return false, err
	case code == 0:
		return true, nil
	case tries < maxTries && (strings.Contains(s.err, "but expected") || strings.Contains(s.err, "Unable to create")):
		return false, ctx.Err() // somebody else moved it, or is about to
	}
	return false, failed([]string{"update-ref"}, s)
}

// author is who merges.
type author struct{ name, email string }

// whoIs asks the user's own settings and environment.
func (g *git) whoIs(ctx context.Context, dir string, environ []string) author {
	own := *g
	own.environ = append(local(environ), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	said, err := own.call(ctx, dir, "var", "GIT_COMMITTER_IDENT")
	name, rest, named := strings.Cut(said, " <")
	email, _, ended := strings.Cut(rest, "> ")
	if err != nil || !named || !ended {
		return author{"nixie", "nixie@localhost"}
	}
	return author{name, email}
}
