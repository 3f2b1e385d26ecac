package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// branchCache holds the tip and the merges of the job's branch. Only this process moves the branch,
// so it is read once: asking git for each item would take longer the more items there are. It is
// read again when the branch was elsewhere than expected or a call that moves it had no answer.
type branchCache struct {
	mu     sync.Mutex
	tip    string            // empty: it is to be read
	merged map[string]string // commits by the trailers of the items that they merged, without the lease
}

// page is the number of merges that one call reads.
const page = 50_000

// read returns the tip, and the commit that merged an item, if there is one.
func (b *branchCache) read(ctx context.Context, j *Job, item string) (tip, commit string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tip == "" {
		if err := b.fill(ctx, j); err != nil {
			return "", "", err
		}
	}
	return b.tip, b.merged[j.trailerOf(item)], nil
}

func (b *branchCache) fill(ctx context.Context, j *Job) error {
	tip, err := j.tip(ctx)
	if err != nil {
		return err
	}
	b.merged = map[string]string{}
	for read := 0; ; read += page {
		text, err := j.git.call(ctx, j.record.Common, "log", "--first-parent", fmt.Sprint("--skip=", read),
			fmt.Sprint("--max-count=", page),
			"--format=%H %(trailers:key="+strings.TrimSuffix(trailer, ": ")+",valueonly,separator=%x20)", j.record.Base+".."+tip)
		if err != nil {
			return err
		}
		merges := lines(text)
		for _, line := range merges {
			commit, of, _ := strings.Cut(line, " ")
			if at := strings.LastIndexByte(of, '/'); at > 0 {
				b.merged[trailer+of[:at+1]] = commit
			}
		}
		if len(merges) < page {
			b.tip = tip
			return nil
		}
	}
}

// set makes a merge commit the known tip.
func (b *branchCache) set(commit, of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip, b.merged[of] = commit, commit
}

// invalidate makes the next read ask git.
func (b *branchCache) invalidate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip = ""
}

// ref names the ref at which the work of the job is. No worktree can check it out, and git branch
// does not see it. The branch of the job is moved along with it, for people to look at.
func (j *Job) ref() string { return "refs/nixie-work/" + j.name }

func (j *Job) branchRef() string { return "refs/heads/" + j.Branch() }

// Follow brings the branch of the job to the tip of the job's work, after it has merged commits
// into that work that others put on the branch. A branch that a user has checked out stays as it
// is: the answer is the folder of that worktree, else empty. Commits that conflict with the work
// are a CodeConflict.
func (j *Job) Follow(ctx context.Context) (folder string, err error) {
	j.merging.Lock()
	defer j.merging.Unlock()
	tip, err := j.tip(ctx)
	if err != nil {
		return "", err
	}
	at, folder, err := j.branchNow(ctx)
	if err != nil {
		return "", err
	}
	if at != "" && at != tip {
		if tip, err = j.takeIn(ctx, tip, at); err != nil {
			return "", err
		}
	}
	if j.behind = folder != ""; j.behind || at == tip {
		return folder, nil
	}
	if at == "" {
		at = strings.Repeat("0", len(tip))
	}
	_, err = j.git.call(ctx, j.record.Common, "update-ref", "-m", "nixie", j.branchRef(), tip, at)
	j.behind = err != nil
	return "", err
}

// takeIn merges commits that others put on the branch into the work of the job.
func (j *Job) takeIn(ctx context.Context, tip, at string) (string, error) {
	if has, err := j.contains(ctx, tip, at); err != nil || has {
		return tip, err
	}
	commit, err := j.mergeCommit(ctx, tip, at, "Merge what others committed on "+j.Branch(), "")
	if err != nil {
		return tip, nixie.WithReason(nixie.Errorf(nixie.CodeConflict, "others committed on %s: %w: git merge %s there brings both together",
			j.Branch(), err, j.ref()), nixie.OutcomeOf(err).Reason)
	}
	j.branch.invalidate()
	_, err = j.git.call(ctx, j.record.Common, "update-ref", "-m", "nixie", j.ref(), commit, tip)
	return commit, err
}

// branchNow returns the commit at which the branch of the job is, empty when the branch is gone,
// and the folder of the worktree of another user who has it checked out.
func (j *Job) branchNow(ctx context.Context) (commit, folder string, err error) {
	s, err := j.git.call(ctx, j.record.Common, "for-each-ref", "--format=%(objectname) %(worktreepath)", j.branchRef())
	commit, folder, _ = strings.Cut(s, " ")
	if j.owns(folder) {
		folder = ""
	}
	return commit, folder, err
}

// owns reports whether a folder is one of the job's.
func (j *Job) owns(folder string) bool {
	own, err := filepath.EvalSymlinks(j.folder())
	return err == nil && within(own, folder)
}

// lookedAt reports whether another user has the branch of the job checked out. It reads the files
// of all worktrees and asks no git, as each merge wants to know.
func (j *Job) lookedAt() bool {
	heads, _ := filepath.Glob(filepath.Join(escapeGlob(j.record.Common), "worktrees", "*", "HEAD")) // the pattern is a good one
	for _, head := range append(heads, filepath.Join(j.record.Common, "HEAD")) {
		text, err := os.ReadFile(head)
		if err != nil || strings.TrimSpace(string(text)) != "ref: "+j.branchRef() {
			continue
		}
		link, err := os.ReadFile(filepath.Join(filepath.Dir(head), "gitdir"))
		if err != nil || !j.owns(absolute(filepath.Dir(head), string(link))) {
			return true
		}
	}
	return false
}

// leaveBranch puts the branch of the job back where the job is, if the attempt has it checked out.
// What the attempt committed there is merged or kept as all else is.
func (t *Tree) leaveBranch(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(t.own, "HEAD"))
	if err != nil || strings.TrimSpace(string(text)) != "ref: "+t.job.branchRef() {
		return nil // also when the attempt has broken its worktree
	}
	if head, err := t.Head(ctx); err == nil {
		if _, err := t.call(ctx, "update-ref", "--no-deref", "HEAD", head); err != nil {
			return err
		}
	}
	tip, err := t.job.tip(ctx)
	if err == nil {
		_, err = t.job.git.call(ctx, t.job.record.Common, "update-ref", "-m", "nixie", t.job.branchRef(), tip)
	}
	return err
}

// refuseUsed refuses to run a job whose branch a user uses: one who has it in the checkout that
// the work is to be merged into, or with changes. One who only looks at it is left alone.
func (j *Job) refuseUsed(ctx context.Context) error {
	_, folder, err := j.branchNow(ctx)
	if err != nil || folder == "" {
		return err
	}
	if info, err := os.Lstat(filepath.Join(folder, ".git")); folder == j.record.Top || err == nil && info.IsDir() {
		return nixie.Errorf(nixie.CodeConflict, "branch %s is checked out in %s, and is the job's: git -C %s switch %s leaves it",
			j.Branch(), folder, folder, shortRef(j.record.Target))
	}
	changes, err := j.changesIn(ctx, folder)
	if err == nil && changes != "" {
		err = nixie.Errorf(nixie.CodeConflict, "branch %s is checked out in %s with changes: commit them, or git -C %s switch --detach",
			j.Branch(), folder, folder)
	}
	return err
}

// changesIn returns the changes of committed files in a checkout, in the short format of git
// status.
func (j *Job) changesIn(ctx context.Context, folder string) (string, error) {
	s, code, err := j.git.filter(ctx, folder, "status", "--porcelain", "--untracked-files=no")
	if err == nil && code != 0 {
		err = failed([]string{"status"}, s)
	}
	return s.out, err
}
