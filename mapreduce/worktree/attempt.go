package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// Tree is the worktree of one attempt.
type Tree struct {
	Path  string
	Item  string
	Lease int64  // number of the attempt's lease
	Start string // the commit at which it began; no branch is checked out

	job  *Job
	slot *slot
}

// Files of an attempt beside its worktree, which no step changes by cleaning up.
const (
	ItemFile   = ".item"
	LogFile    = ".log" // kept with a worktree that is kept
	ResultFile = ".result"
)

// File is the path of one of them.
func (t *Tree) File(kind string) string { return t.Path + kind }

// slot is a worktree that attempts have one after the other.
type slot struct{ path string }

func (j *Job) makeSlots(ctx context.Context) error {
	if err := os.MkdirAll(j.folder("pool"), 0o700); err != nil {
		return broken(fmt.Errorf("state of the job: %w", err))
	}
	j.slots = make(chan *slot, j.c.Most)
	for n := range j.c.Most {
		j.slots <- &slot{j.folder("pool", strconv.Itoa(n))}
	}
	if err := j.sweep(ctx); err != nil {
		return err
	}
	return alone(j.note.Common, func() error {
		_, err := j.git.call(ctx, j.note.Common, "worktree", "prune")
		return err
	})
}

// Attempt gives an attempt a clean worktree at the tip of the job. It waits while all of
// them are out. What it cannot make so is the reason [nixie.ReasonWorktree], or
// [nixie.ReasonResource] when there is no room.
func (j *Job) Attempt(ctx context.Context, item string, lease int64) (t *Tree, err error) {
	var s *slot
	select {
	case s = <-j.slots:
	case <-ctx.Done():
		return nil, nixie.Errorf(nixie.CodeUnavailable, "waiting for a worktree: %w", ctx.Err())
	}
	defer func() {
		if err != nil {
			j.slots <- s
		}
	}()
	t = &Tree{Path: s.path, Item: item, Lease: lease, job: j, slot: s}
	var merged string
	if t.Start, merged, err = j.branch.read(ctx, j, item); err != nil {
		return nil, err
	}
	stale := []string{t.File(ItemFile), t.File(LogFile), t.File(ResultFile)}
	if merged == "" {
		stale = append(stale, j.resultOf(item)) // of an attempt that could not be joined
	}
	for _, stale := range stale {
		if err := os.RemoveAll(stale); err != nil {
			return nil, broken(fmt.Errorf("worktree: %w", err))
		}
	}
	if j.reusable(s) && t.reset(ctx) == nil {
		return t, nil
	}
	if err := j.renew(ctx, s, t.Start); err != nil {
		return nil, err
	}
	if err := t.reset(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// attemptBranch is the branch of an attempt that is kept. Others need none: a killed git
// would leave its lock, and each a call to remove it.
func (j *Job) attemptBranch(item string, lease int64) string {
	return fmt.Sprintf("nixie-attempts/%s/%s/%d", j.name, refName(item), lease)
}

// refName makes an ID a part of the name of a branch, or of a folder.
func refName(id string) string {
	name := strings.NewReplacer(" ", "%20", ".", "%2E", "@", "%40").Replace(itemfile.FileName(id))
	if len(name) <= maxRefName {
		return name
	}
	hash := nixie.HashBody([]byte(id))
	return fmt.Sprintf("%s-%x", strings.ToValidUTF8(name[:maxRefName-33], ""), hash[:16])
}

// maxRefName is how many bytes such a part may have.
const maxRefName = 200

// usual are what the folder that git keeps of a worktree may hold. Anything else, as of a
// rebase that was not ended or a lock of a git that was killed, is no clean beginning.
var usual = [...]string{"HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_RR", "commondir", "gitdir", "index", "info", "logs", "refs"}

// reusable reports whether a worktree is there, and nothing is under way in it.
func (j *Job) reusable(s *slot) bool {
	own, err := j.own(s)
	if err != nil {
		return false
	}
	entries, err := os.ReadDir(own)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(usual[:], e.Name()) })
}

// own is the folder that git keeps of a worktree, below that of the repository.
func (j *Job) own(s *slot) (string, error) {
	raw, err := os.ReadFile(filepath.Join(s.path, ".git"))
	if err != nil {
		return "", err
	}
	own := strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir: "))
	if !within(filepath.Join(j.note.Common, "worktrees"), own) {
		return "", errors.New("it is not of this repository")
	}
	return own, nil
}

// renew makes a worktree anew, with nothing checked out yet. One that is registered and not
// there any more, or was being made when its maker was killed, is no hindrance.
func (j *Job) renew(ctx context.Context, s *slot, at string) error {
	if err := os.RemoveAll(s.path); err != nil {
		return broken(fmt.Errorf("worktree: %w", err))
	}
	return alone(j.note.Common, func() error {
		if _, err := j.git.call(ctx, j.note.Common, "worktree", "prune"); err != nil {
			return err
		}
		if _, err := j.git.call(ctx, j.note.Common, "worktree", "add", "--force", "--force", "--quiet", "--detach", "--no-checkout", s.path, at); err != nil {
			return err
		}
		return j.narrow(s)
	})
}

// narrow says which folders a worktree has.
func (j *Job) narrow(s *slot) error {
	if len(j.c.Checkout) == 0 {
		return nil
	}
	own, err := j.own(s)
	if err == nil {
		err = os.MkdirAll(filepath.Join(own, "info"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(own, "info", "sparse-checkout"), []byte(cone(j.c.Checkout)), 0o600)
	}
	if err != nil {
		return broken(fmt.Errorf("folders to check out: %w", err))
	}
	return nil
}

// cone is what git writes for such folders: the files above them, and all below.
func cone(folders []string) string {
	list := []string{"/*", "!/*/"}
	above := map[string]bool{}
	for _, folder := range folders {
		for at := filepath.Dir(filepath.Clean(folder)); at != "."; at = filepath.Dir(at) {
			above[at] = true
		}
	}
	var parents []string
	for at := range above {
		parents = append(parents, at)
	}
	slices.Sort(parents)
	for _, at := range parents {
		list = append(list, "/"+at+"/", "!/"+at+"/*/")
	}
	for _, folder := range folders {
		list = append(list, "/"+filepath.Clean(folder)+"/")
	}
	return strings.Join(list, "\n") + "\n"
}

// sparse are the settings under which a worktree has only some folders.
func (j *Job) sparse() []string {
	if len(j.c.Checkout) == 0 {
		return nil
	}
	return []string{"core.sparseCheckout=true", "core.sparseCheckoutCone=true"}
}

// call runs git in the worktree.
func (t *Tree) call(ctx context.Context, args ...string) (string, error) {
	var all []string
	for _, setting := range t.job.sparse() {
		all = append(all, "-c", setting)
	}
	return t.job.git.call(ctx, t.Path, append(all, args...)...)
}

// reset checks out where the attempt begins, and nothing else is there then.
func (t *Tree) reset(ctx context.Context) error {
	if _, err := t.call(ctx, "checkout", "--quiet", "--force", "--detach", t.Start); err != nil {
		return err
	}
	if _, err := t.call(ctx, "clean", "--quiet", "-ffdx"); err != nil {
		return err
	}
	// What is committed the checkout has looked at, file by file; status would do it again.
	left, err := t.call(ctx, "ls-files", "--others")
	if err == nil && left != "" {
		err = broken(fmt.Errorf("worktree %s is not clean: %s", t.Path, lines(left)[0]))
	}
	return err
}

// Head is the commit that is checked out now.
func (t *Tree) Head(ctx context.Context) (string, error) {
	return t.call(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
}

// Changes are what is not committed, as git status says it in short.
func (t *Tree) Changes(ctx context.Context) (string, error) {
	return t.call(ctx, "status", "--porcelain", "--untracked-files=all")
}

// Environ is what the commands of an attempt get: git works in no other repository, not
// in the background, and sees the folders that are checked out.
func (t *Tree) Environ() []string {
	all := append([]string{"gc.auto=0", "maintenance.auto=false", "core.preloadIndex=false"}, t.job.sparse()...)
	had := 0 // settings that the caller gives in the same way
	for _, variable := range t.job.c.Environ {
		if count, is := strings.CutPrefix(variable, "GIT_CONFIG_COUNT="); is {
			had, _ = strconv.Atoi(count)
		}
	}
	environ := append(local(t.job.c.Environ), "GIT_CONFIG_COUNT="+strconv.Itoa(had+len(all)))
	for i, setting := range all {
		name, value, _ := strings.Cut(setting, "=")
		environ = append(environ, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", had+i, name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", had+i, value))
	}
	return environ
}

// Release gives the worktree to the next attempt. What is committed there alone is lost.
func (t *Tree) Release() { t.job.slots <- t.slot }
