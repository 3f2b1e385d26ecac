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
	own  string // the folder that git keeps for it
	git  git    // for this worktree
	seen int    // how often a disk had been full when it began
}

// Files of an attempt lie next to its worktree, so that no step removes them by cleaning up.
const (
	ItemFile   = ".item"
	ResultFile = ".result"
)

// File returns the path of one of them.
func (t *Tree) File(kind string) string { return t.Path + kind }

// Log returns the path of the log of the attempt. Each attempt has its own.
func (t *Tree) Log() string {
	return filepath.Join(t.job.logsOf(t.Item), strconv.FormatInt(t.Lease, 10)+".log")
}

// logsOf returns the folder of the logs of an item.
func (j *Job) logsOf(item string) string { return j.folder("logs", refName(item)) }

// ForgetLogs removes the logs of all attempts of an item.
func (j *Job) ForgetLogs(item string) error { return os.RemoveAll(j.logsOf(item)) }

// slot is a worktree that attempts use one after the other.
type slot struct {
	path string
	home chan *slot // where it waits for the next one
}

func (j *Job) makeSlots(ctx context.Context) error {
	if err := os.MkdirAll(j.folder("pool"), 0o700); err != nil {
		return worktreeError(fmt.Errorf("state of the job: %w", err))
	}
	j.slots = make(chan *slot, j.c.Parallel)
	for n := range j.c.Parallel {
		j.slots <- &slot{j.folder("pool", strconv.Itoa(n)), j.slots}
	}
	j.shared = make(chan *slot, 1)
	j.shared <- &slot{j.sharedFolder(), j.shared}
	if err := j.sweep(ctx); err != nil {
		return err
	}
	return withRepositoryLock(j.record.Common, func() error {
		_, err := j.git.call(ctx, j.record.Common, "worktree", "prune")
		return err
	})
}

// Attempt gives an attempt a clean worktree at the tip of the job. It waits while other attempts
// use all of them. When it cannot make one, its error has [nixie.ReasonWorktree], or
// [nixie.ReasonResource] when memory is full; when a disk is, it is a [*command.FullError].
func (j *Job) Attempt(ctx context.Context, item string, lease int64) (*Tree, error) {
	return j.attempt(ctx, j.slots, item, lease, (*Tree).fresh)
}

// attempt gives an attempt the next worktree of some, which prepare makes ready.
func (j *Job) attempt(
	ctx context.Context, from <-chan *slot, item string, lease int64, prepare func(*Tree, context.Context) error,
) (t *Tree, err error) {
	var s *slot
	select {
	case s = <-from:
	case <-ctx.Done():
		return nil, nixie.Errorf(nixie.CodeUnavailable, "waiting for a worktree: %w", ctx.Err())
	}
	seen, err := j.beginWithRoom()
	defer func() {
		if err == nil {
			return
		}
		s.home <- s
		if full := j.fullSince(seen, err); full != nil {
			err = full
		}
	}()
	if err != nil {
		return nil, err
	}
	t = &Tree{Path: s.path, Item: item, Lease: lease, job: j, slot: s, seen: seen}
	var merged string
	if t.Start, merged, err = j.branch.read(ctx, j, item); err != nil {
		return nil, err
	}
	stale := []string{t.File(ItemFile), t.File(ResultFile), t.Log()}
	if merged == "" {
		stale = append(stale, j.resultOf(item)) // of an attempt that could not be joined
	}
	for _, stale := range stale {
		if err := os.RemoveAll(stale); err != nil {
			return nil, worktreeError(fmt.Errorf("worktree: %w", err))
		}
	}
	return t, prepare(t, ctx)
}

// fresh makes the worktree a clean one at the commit where the attempt begins.
func (t *Tree) fresh(ctx context.Context) error {
	if own, ok := t.job.reusable(t.slot); ok && t.reset(ctx, own) == nil {
		return nil
	}
	own, err := t.job.recreate(ctx, t.slot, t.Start)
	if err != nil {
		return err
	}
	t.Path = t.slot.path
	return t.reset(ctx, own)
}

// attemptBranch names the branch of a kept attempt. Other attempts have none: a killed git would
// leave its lock, and each branch would cost a call to remove it.
func (j *Job) attemptBranch(item string, lease int64) string {
	return fmt.Sprintf("nixie-attempts/%s/%s/%d", j.name, refName(item), lease)
}

// refName makes a part of a branch's or folder's name from an ID.
func refName(id string) string {
	if phase, is := strings.CutPrefix(id, phaseMark); is {
		return "@" + refName(phase)
	}
	name := strings.NewReplacer(" ", "%20", ".", "%2E", "@", "%40").Replace(itemfile.FileName(id))
	if len(name) <= maxRefName {
		return name
	}
	hash := nixie.HashBody([]byte(id))
	return fmt.Sprintf("%s-%x", strings.ToValidUTF8(name[:maxRefName-33], ""), hash[:16])
}

// maxRefName limits the bytes of such a part.
const maxRefName = 200

// cleanEntries lists the files of a worktree's git folder that a new attempt may find. Any other
// file, such as that of an unfinished rebase or the lock of a killed git, forbids reuse.
var cleanEntries = [...]string{"HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_RR", "commondir", "gitdir", "index", "info",
	"logs", "refs"}

// reusable returns the git folder of a worktree that exists and in which no git operation is
// unfinished.
func (j *Job) reusable(s *slot) (own string, ok bool) {
	own, err := j.gitDir(s)
	if err != nil {
		return "", false
	}
	entries, err := os.ReadDir(own)
	return own, err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(cleanEntries[:], e.Name()) })
}

// gitDir returns the folder that git keeps for a worktree, below that of the repository. Each must
// name the other: an attempt may have written either.
func (j *Job) gitDir(s *slot) (string, error) {
	raw, err := os.ReadFile(filepath.Join(s.path, ".git"))
	if err != nil {
		return "", err
	}
	own := absolute(s.path, strings.TrimPrefix(string(raw), "gitdir: "))
	if !within(filepath.Join(j.record.Common, "worktrees"), own) {
		return "", errors.New("it belongs to another repository")
	}
	back, err := os.ReadFile(filepath.Join(own, "gitdir"))
	if err != nil {
		return "", err
	}
	here, err := os.Stat(s.path)
	if err != nil {
		return "", err
	}
	there, err := os.Stat(filepath.Dir(absolute(own, string(back))))
	if err != nil || !os.SameFile(here, there) {
		return "", errors.New("it belongs to another worktree")
	}
	return own, nil
}

// absolute returns a path that git wrote to a file in a folder.
func absolute(folder, path string) string {
	if path = strings.TrimSpace(path); !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return path
}

// recreate makes a worktree anew, with nothing checked out yet, and returns its git folder. It
// replaces one that git still registers and that is gone, and one that was half made when its
// process was killed.
func (j *Job) recreate(ctx context.Context, s *slot, at string) (own string, err error) {
	if err := removeAll(s.path); err != nil {
		s.path += "-next" // what an attempt left there stays until the job is cleaned
		if err := removeAll(s.path); err != nil {
			return "", worktreeError(fmt.Errorf("worktree: %w", err))
		}
	}
	err = withRepositoryLock(j.record.Common, func() error {
		if _, err := j.git.call(ctx, j.record.Common, "worktree", "prune"); err != nil {
			return err
		}
		if _, err := j.git.call(ctx, j.record.Common, "worktree", "add", "--force", "--force", "--quiet", "--detach", "--no-checkout",
			s.path, at); err != nil {
			return err
		}
		if own, err = j.gitDir(s); err != nil {
			return worktreeError(err)
		}
		return j.writeSparse(own)
	})
	return own, err
}

// removeAll removes a folder, also one with folders that its owner may not write to.
func removeAll(folder string) error {
	if os.RemoveAll(folder) == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder; removing it tells
		}
		return nil
	})
	return os.RemoveAll(folder)
}

// writeSparse tells git which folders to check out in a worktree.
func (j *Job) writeSparse(own string) error {
	if len(j.c.Checkout) == 0 {
		return nil
	}
	err := os.MkdirAll(filepath.Join(own, "info"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(own, "info", "sparse-checkout"), []byte(conePatterns(j.c.Checkout)), 0o600)
	}
	if err != nil {
		return worktreeError(fmt.Errorf("folders to check out: %w", err))
	}
	return nil
}

// conePatterns returns the sparse-checkout file that git would write for such folders: the files
// above them, and all below.
func conePatterns(folders []string) string {
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

// sparseSettings returns the settings under which a worktree has only some folders.
func (j *Job) sparseSettings() [][2]string {
	if len(j.c.Checkout) == 0 {
		return nil
	}
	return [][2]string{{"core.sparseCheckout", "true"}, {"core.sparseCheckoutCone", "true"}}
}

// call runs git for the worktree. It works in the folder of the repository: the attempt may have
// removed its own.
func (t *Tree) call(ctx context.Context, args ...string) (string, error) {
	return t.git.call(ctx, t.job.record.Common, args...)
}

// filter runs a call for the worktree that reads or writes the content of its files.
func (t *Tree) filter(ctx context.Context, args ...string) (string, error) {
	var all []string
	for _, setting := range t.job.sparseSettings() {
		all = append(all, "-c", setting[0]+"="+setting[1])
	}
	s, code, err := t.git.filter(ctx, t.job.record.Common, append(all, args...)...)
	if err == nil && code != 0 {
		err = failed(args, s)
	}
	return s.out, err
}

// reset checks out the commit at which the attempt begins and removes all other files.
func (t *Tree) reset(ctx context.Context, own string) error {
	t.own, t.git = own, t.job.git.in(t.job.record.Common, own, t.Path)
	if _, err := t.filter(ctx, "checkout", "--quiet", "--force", "--detach", t.Start); err != nil {
		return err
	}
	if _, err := t.call(ctx, "clean", "--quiet", "-ffdx"); err != nil {
		return err
	}
	// The checkout has compared all committed files already; status would do it again.
	left, err := t.call(ctx, "ls-files", "--others")
	if err == nil && left != "" {
		err = worktreeError(fmt.Errorf("worktree %s is not clean: %s", t.Path, lines(left)[0]))
	}
	return err
}

// Head returns the commit that is checked out now.
func (t *Tree) Head(ctx context.Context) (string, error) {
	return t.call(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
}

// Changes returns the uncommitted changes in the short format of git status. When git no longer
// knows the folder as this worktree, the commands have committed elsewhere or not at all, and the
// error has [nixie.ReasonWorktree].
func (t *Tree) Changes(ctx context.Context) (string, error) {
	if _, err := t.job.gitDir(t.slot); err != nil {
		return "", worktreeError(fmt.Errorf("the worktree was broken by its item: %w", err))
	}
	return t.filter(ctx, "status", "--porcelain", "--untracked-files=all")
}

// Environ returns the environment of an attempt's commands. In it git works in no other repository
// and not in the background, and sees the folders that are checked out.
func (t *Tree) Environ() []string {
	all := append([][2]string{{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"core.preloadIndex", "false"}}, t.job.sparseSettings()...)
	had := 0 // settings that the caller gives in the same way
	for _, variable := range t.job.c.Environ {
		if count, is := strings.CutPrefix(variable, "GIT_CONFIG_COUNT="); is {
			had, _ = strconv.Atoi(count)
		}
	}
	return append(withoutRepository(t.job.c.Environ), settingsIn(had, all)...)
}

// Release gives the worktree to the next attempt, and removes the log. Commits that no branch has
// are lost.
func (t *Tree) Release() {
	if os.Remove(t.Log()) == nil {
		_ = os.Remove(t.job.logsOf(t.Item)) // unless it has those of earlier attempts
	}
	t.Leave()
}

// Leave gives the worktree to the next attempt, and keeps the log.
func (t *Tree) Leave() {
	_ = t.leaveBranch(context.Background()) // Follow tells what is left; the context of the attempt may have ended
	t.slot.home <- t.slot
}
