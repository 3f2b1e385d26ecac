// Package worktree gives each attempt of an item a worktree of a git repository, and joins
// what succeeded on the branch of its job. The user's checkout is not touched before
// [Job.Deliver].
//
// Merges are made of objects alone, by git merge-tree, and become the tip of the branch by
// a compare-and-swap: nothing is checked out for them, nothing is half merged after a
// crash, and a trailer says which attempt a merge is of, so that none is merged twice.
package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// DefaultDeadline bounds one call of git.
const DefaultDeadline = 2 * time.Minute

// Config says where a job works.
type Config struct {
	Repo     string        // a folder in the user's repository
	State    string        // a folder for worktrees and notes, outside the repository; made if need be
	Job      string        // its name; the branch is nixie/JOB
	Checkout []string      // folders that attempts see, beside the files above them; none is everything
	Existing bool          // a job that is not there is CodeNotFound, and not begun
	Most     int           // attempts at once; 0 is 1
	Deadline time.Duration // of one call of git; 0 is [DefaultDeadline]
	Git      string        // the program; empty looks it up
	Environ  []string      // of this process, for git and for commands
}

// Job is one that works on a repository. It is safe for concurrent use.
type Job struct {
	c    Config
	name string // as a part of a path or a branch
	git  *git
	who  author
	note note
	lock *os.File // as long as the job is open, nobody else has it

	branch  branch
	slots   chan *slot // those that no attempt has
	merging sync.Mutex // one at a time, oldest first
}

// note is what is kept of a job.
type note struct {
	Job    string `json:"job"`
	Common string `json:"common"` // the repository's own folder
	Top    string `json:"top"`    // the user's checkout
	Target string `json:"target"` // the branch that was checked out there
	Base   string `json:"base"`   // the commit at which the job began
}

const noteFile = "job.json"

// Branch is the branch of the job.
func (j *Job) Branch() string { return "nixie/" + j.name }

// Base is the commit at which the job began.
func (j *Job) Base() string { return j.note.Base }

// folder is a path in the state of the job.
func (j *Job) folder(parts ...string) string {
	return filepath.Join(append([]string{j.c.State, j.name}, parts...)...)
}

// Open begins a job, or goes on with one: the branch of a new one is at the commit that is
// checked out. What cannot be worked on is refused, with the reason. A job that another
// process has is a CodeConflict that names it.
func Open(ctx context.Context, c Config) (_ *Job, err error) {
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	j := &Job{c: c, name: refName(c.Job)}
	if j.git, err = newGit(c.Git, c.Environ, c.Deadline); err != nil {
		return nil, err
	}
	known, err := j.recall()
	if err != nil {
		return nil, err
	}
	if c.Existing && !known {
		return nil, unknownJob(c.Job)
	}
	if err := os.MkdirAll(j.folder("results"), 0o700); err != nil {
		return nil, broken(fmt.Errorf("state of the job: %w", err))
	}
	if j.lock, err = lockJob(ctx, j.folder("lock")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.lock.Close())
		}
	}()
	if known, err = j.recall(); err != nil { // the last holder may have begun it
		return nil, err
	}
	if err := j.survey(ctx, known); err != nil {
		return nil, err
	}
	return j, errors.Join(j.unlock(), j.makeSlots(ctx))
}

func (c Config) withDefaults() (Config, error) {
	if err := nixie.CheckName("job", c.Job); err != nil {
		return c, err
	}
	for _, folder := range []*string{&c.Repo, &c.State} {
		if *folder == "" {
			return c, nixie.Errorf(nixie.CodeInvalid, "worktrees need a repository and a folder for their state")
		}
		whole, err := filepath.Abs(*folder)
		if err != nil {
			return c, nixie.Errorf(nixie.CodeInvalid, "folder %s: %w", *folder, err)
		}
		*folder = whole
	}
	for _, at := range c.Checkout {
		if !filepath.IsLocal(at) || strings.ContainsAny(at, "\n\\*?[]") {
			return c, nixie.Errorf(nixie.CodeInvalid, "checkout %q is not a folder of the repository: give one such as src/lib", at)
		}
	}
	c.Most = max(c.Most, 1)
	if c.Deadline <= 0 {
		c.Deadline = DefaultDeadline
	}
	return c, nil
}

// recall reads the note of a job that was opened before.
func (j *Job) recall() (known bool, err error) {
	raw, err := os.ReadFile(j.folder(noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &j.note)
	}
	if err != nil {
		return false, broken(fmt.Errorf("%s: %w", j.folder(noteFile), err))
	}
	return true, nil
}

// survey finds the repository, and begins the job unless it is known.
func (j *Job) survey(ctx context.Context, known bool) error {
	version, err := j.git.call(ctx, j.c.State, "version")
	if err != nil {
		return err
	}
	if number := strings.TrimPrefix(version, "git version "); old(number, leastGit) {
		return nixie.Errorf(nixie.CodeUnavailable, "git is %s: install %s or later", number, leastGit)
	}
	common, err := j.git.call(ctx, j.c.Repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s is not in a git repository: name a folder that is", j.c.Repo)
	}
	if err := j.git.disarm(ctx, common); err != nil {
		return err
	}
	j.who = j.git.whoIs(ctx, j.c.Repo, j.c.Environ)
	if known {
		if j.note.Common != common {
			return nixie.Errorf(nixie.CodeConflict, "job %s is about the repository %s, and this is %s: give another name", j.c.Job, j.note.Common, common)
		}
		if _, err := j.tip(ctx); err != nil {
			return nixie.Errorf(nixie.CodeConflict, "branch %s of job %s is gone: make it again, or clean the job", j.Branch(), j.c.Job)
		}
		return nil
	}
	j.note.Job, j.note.Common = j.c.Job, common
	if err := j.fit(ctx); err != nil {
		return err
	}
	return j.begin(ctx)
}

// unlock removes the lock of the job's branch that a git left which ended with the machine:
// no call of git takes that long, and nobody else has the job.
func (j *Job) unlock() error {
	lock := filepath.Join(j.note.Common, "refs", "heads", filepath.FromSlash(j.Branch())+".lock")
	info, err := os.Lstat(lock)
	if err == nil && time.Since(info.ModTime()) > 2*j.c.Deadline {
		err = os.Remove(lock)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return broken(fmt.Errorf("lock of branch %s: %w", j.Branch(), err))
	}
	return nil
}

// begin makes the branch, and then the note: a branch without a note is made anew by
// nobody but us, as long as it is where the job began.
func (j *Job) begin(ctx context.Context) error {
	at, err := j.tip(ctx)
	if err == nil && at != j.note.Base {
		return nixie.Errorf(nixie.CodeConflict, "branch %s is there and is not of this job: rename it, or give the job another name", j.Branch())
	}
	if err != nil {
		if _, err := j.git.call(ctx, j.note.Common, "update-ref", "refs/heads/"+j.Branch(), j.note.Base, strings.Repeat("0", len(j.note.Base))); err != nil {
			return nixie.Errorf(nixie.CodeConflict, "branch %s cannot be made: %w", j.Branch(), err)
		}
	}
	raw, err := json.Marshal(j.note)
	if err != nil {
		return err
	}
	return writeFile(j.folder(noteFile), raw)
}

// writeFile writes a file whole; after a power failure it is there.
func writeFile(name string, raw []byte) error {
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = file.Write(append(raw, '\n'))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(name))
	}
	if err != nil {
		return broken(fmt.Errorf("state of the job: %w", err))
	}
	return nil
}

// syncFolder lets the names in a folder outlast a power failure.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// tip is the commit at which the branch of the job is.
func (j *Job) tip(ctx context.Context) (string, error) {
	return j.git.call(ctx, j.note.Common, "rev-parse", "--verify", "--quiet", "refs/heads/"+j.Branch()+"^{commit}")
}

// fit refuses a repository that worktrees would show otherwise than its checkout.
func (j *Job) fit(ctx context.Context) error {
	about, err := j.git.call(ctx, j.c.Repo, "rev-parse", "--is-bare-repository", "--is-shallow-repository")
	if err != nil {
		return err
	}
	switch bare, shallow, _ := strings.Cut(about, "\n"); {
	case bare == "true":
		return nixie.Errorf(nixie.CodeInvalid, "%s is a bare repository: give a checkout of it", j.c.Repo)
	case shallow == "true":
		return nixie.Errorf(nixie.CodeInvalid, "%s has not the whole history: git fetch --unshallow brings it", j.c.Repo)
	}
	if j.note.Top, err = j.git.call(ctx, j.c.Repo, "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if within(j.note.Top, j.c.State) {
		return nixie.Errorf(nixie.CodeInvalid, "the state %s lies in the repository: name a folder outside", j.c.State)
	}
	if j.note.Base, err = j.git.call(ctx, j.c.Repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s has no commit yet: make one", j.c.Repo)
	}
	if j.note.Target, err = j.git.call(ctx, j.c.Repo, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s is on no branch: check one out, which the work is to be merged into", j.c.Repo)
	}
	changes, err := j.git.call(ctx, j.note.Top, "status", "--porcelain", "--untracked-files=no")
	switch {
	case err != nil:
		return err
	case changes != "":
		return nixie.Errorf(nixie.CodeInvalid, "%s has changes that are not committed, which no attempt would see: commit or stash %s", j.note.Top, strings.TrimSpace(lines(changes)[0][2:]))
	}
	return j.fitFiles(ctx)
}

// within reports whether a folder is another one or below it.
func within(folder, below string) bool {
	rel, err := filepath.Rel(folder, below)
	return err == nil && filepath.IsLocal(rel)
}

// fitFiles looks at what is committed.
func (j *Job) fitFiles(ctx context.Context) error {
	tree, err := j.git.call(ctx, j.note.Common, "ls-tree", "-r", "-z", j.note.Base)
	if err != nil {
		return err
	}
	ignores, _, err := j.git.ask(ctx, j.note.Common, nil, "config", "--local", "--type=bool", "core.ignoreCase")
	if err != nil {
		return err
	}
	seen := map[string]string{}
	var links, linked []string
	for _, entry := range fields(tree) {
		about, name, _ := strings.Cut(entry, "\t")
		mode, rest, _ := strings.Cut(about, " ")
		switch lower := strings.ToLower(name); {
		case mode == "160000":
			return nixie.Errorf(nixie.CodeInvalid, "%s is a submodule, and worktrees have none: take it out, or work in its own repository", name)
		case ignores.out == "true" && seen[lower] != "":
			return nixie.Errorf(nixie.CodeInvalid, "%s and %s are one file on this system: rename one", seen[lower], name)
		default:
			seen[lower] = name
		}
		if mode == "120000" {
			links, linked = append(links, name), append(linked, rest[len("blob "):])
		}
		if path.Base(name) == ".gitattributes" {
			text, err := j.git.call(ctx, j.note.Common, "cat-file", "blob", rest[len("blob "):])
			if err != nil {
				return err
			}
			if strings.Contains(text, "filter=lfs") {
				return nixie.Errorf(nixie.CodeInvalid, "%s puts files into LFS, and attempts would see pointers: git lfs migrate export brings them back", name)
			}
		}
	}
	for i, name := range links {
		target, err := j.git.call(ctx, j.note.Common, "cat-file", "blob", linked[i])
		if err != nil {
			return err
		}
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
			return nixie.Errorf(nixie.CodeInvalid, "%s is a link to %q, outside the repository, where attempts would change the same files: take it out", name, target)
		}
	}
	return nil
}

// Close lets others have the job. Attempts have ended before. It may be called again.
func (j *Job) Close() error {
	if err := j.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
