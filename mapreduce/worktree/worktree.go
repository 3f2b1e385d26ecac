// Package worktree gives each attempt of an item a worktree of a git repository and merges
// successful attempts into the branch of their job. It does not touch the user's checkout before
// [Job.Deliver].
//
// Git merge-tree makes merges from objects alone, so nothing is checked out for them. A
// compare-and-swap moves the ref of the job, so no crash leaves half a merge. A trailer names the
// attempt of each merge, so that no item is merged twice. The branch of the job follows that ref.
package worktree

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// DefaultDeadline bounds one call of git.
const DefaultDeadline = 2 * time.Minute

// Config names the repository, the state and the limits of a job.
type Config struct {
	Repo     string        // a folder in the user's repository; empty is that of the job, which must be Existing; see [Find]
	State    string        // a folder for worktrees and records, outside the repository; made if need be
	Job      string        // its name, one for each repository; the branch is nixie/JOB
	Checkout []string      // folders to check out, with the files above them; none means everything
	Existing bool          // a job that does not exist is CodeNotFound, and not begun
	Parallel int           // attempts at once; 0 is 1
	Deadline time.Duration // of one call of git; 0 is [DefaultDeadline]
	Git      string        // the program; empty means git on PATH
	Environ  []string      // of this process, for git and for commands
}

// Job is an open job of a repository. It is safe for concurrent use.
type Job struct {
	c         Config
	name      string // as a part of a branch
	dir       string // its folder in the state: the name with the hash of the repository
	left      string // the checkout that was moved; empty: none was
	git       *git
	committer identity
	record    record
	lock      *os.File // held while the job is open

	branch  branchCache
	room    room
	slots   chan *slot // those that no attempt uses
	shared  chan *slot // the one of the phases, while none uses it
	merging sync.Mutex // held during a merge: one at a time, oldest first
	behind  bool       // the branch may be elsewhere than the work; under merging
}

// record is the file that describes a job.
type record struct {
	Job    string `json:"job"`
	Common string `json:"common"`          // the repository's own folder
	Top    string `json:"top"`             // the user's checkout
	Target string `json:"target"`          // the branch that was checked out there
	Base   string `json:"base"`            // the commit at which the job began
	Queue  string `json:"queue,omitempty"` // of its items; see [Job.ChooseQueue]
	Store  string `json:"store,omitempty"` // that has the queue
}

const recordFile = "job.json"

// Branch returns the name of the job's branch.
func (j *Job) Branch() string { return "nixie/" + j.name }

// Base returns the commit at which the job began.
func (j *Job) Base() string { return j.record.Base }

// folder returns a path in the state of the job.
func (j *Job) folder(parts ...string) string {
	return filepath.Join(append([]string{j.c.State, j.dir}, parts...)...)
}

// Open begins a job, or continues one. The branch of a new job is at the commit that is checked
// out. Open refuses a repository that worktrees would show otherwise than its checkout. A job that
// another process holds is a CodeConflict that names the process.
func Open(ctx context.Context, c Config) (_ *Job, err error) {
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	g, err := newGit(c.Git, c.Environ, c.Deadline)
	if err != nil {
		return nil, err
	}
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	j, err := locate(ctx, c, g)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(j.folder("results"), 0o700); err != nil {
		return nil, worktreeError(fmt.Errorf("state of the job: %w", err))
	}
	if j.lock, err = lockJob(ctx, j.folder("lock")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.lock.Close())
		}
	}()
	if err := j.find(ctx); err != nil {
		return nil, err
	}
	return j, errors.Join(j.unlock(), j.makeSlots(ctx))
}

func (c Config) withDefaults() (Config, error) {
	if err := nixie.CheckName("job", c.Job); err != nil {
		return c, err
	}
	for _, folder := range []*string{&c.Repo, &c.State} {
		if *folder == "" && folder == &c.Repo && c.Existing {
			continue
		}
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
	c.Parallel = max(c.Parallel, 1)
	if c.Deadline <= 0 {
		c.Deadline = DefaultDeadline
	}
	return c, nil
}

// readRecord reads the record of a job that was opened before.
func (j *Job) readRecord() (known bool, err error) {
	was, known, err := readJSON[record](j.folder(recordFile))
	if known {
		j.record = was
	}
	return known, err
}

// checkVersion refuses a git that is too old.
func (g *git) checkVersion(ctx context.Context) error {
	version, err := g.call(ctx, "", "version")
	if err != nil {
		return err
	}
	if number := strings.TrimPrefix(version, "git version "); olderThan(number, minGit) {
		return nixie.Errorf(nixie.CodeUnavailable, "git is %s: install %s or later", number, minGit)
	}
	return nil
}

// find finds the work of the job, and begins the job unless it was begun.
func (j *Job) find(ctx context.Context) error {
	if j.gone() {
		return nixie.Errorf(nixie.CodeNotFound,
			"job %s is about %s, which is gone: if it was moved, name it by --repo, and if not, remove %s", j.c.Job, j.record.Common,
			j.folder())
	}
	j.committer = j.git.committer(ctx, j.c.Repo, j.c.Environ)
	if j.left != "" {
		if err := j.settle(ctx); err != nil {
			return err
		}
	}
	known, err := j.readRecord() // the last holder may have begun it
	switch {
	case err != nil:
		return err
	case known:
		return j.findWork(ctx)
	case plain(j.c.Job) != j.c.Job:
		return nixie.Errorf(nixie.CodeInvalid, "job %q ends as the queues of jobs of further repositories do: leave out ~ and what follows",
			j.c.Job)
	}
	for _, phase := range []string{"/setup", "/reduce", "/merge"} {
		if strings.HasSuffix(j.c.Job, phase) {
			return nixie.Errorf(nixie.CodeInvalid, "job %q ends as the queues of phases do: leave out %s", j.c.Job, phase)
		}
	}
	if err := j.checkRepository(ctx); err != nil {
		return err
	}
	return j.begin(ctx)
}

// findWork finds the work of a job that was begun, and refuses to run one whose branch is gone or
// in use.
func (j *Job) findWork(ctx context.Context) error {
	branch, _, err := j.branchNow(ctx)
	if err != nil {
		return err
	}
	tip, err := j.tip(ctx)
	if err != nil && branch != "" { // begun by a build that had the branch only
		tip = branch
		if _, err := j.git.call(ctx, j.record.Common, "update-ref", j.ref(), tip); err != nil {
			return err
		}
	}
	switch {
	case j.c.Existing:
		return nil
	case branch == "":
		return nixie.Errorf(nixie.CodeConflict, "branch %s of job %s is gone: git -C %s branch %s %s makes it again, or clean the job",
			j.Branch(), j.c.Job, j.record.Top, j.Branch(), cmp.Or(tip, j.record.Base))
	}
	if err := j.refuseUsed(ctx); err != nil {
		return err
	}
	_, err = j.Follow(ctx)
	return err
}

// unlock removes a lock on the job's branch that git left when the machine went down. It is safe:
// no call of git takes that long, and no other process has the job.
func (j *Job) unlock() error {
	lock := filepath.Join(j.record.Common, "refs", "heads", filepath.FromSlash(j.Branch())+".lock")
	info, err := os.Lstat(lock)
	if err == nil && time.Since(info.ModTime()) > 2*j.c.Deadline {
		err = os.Remove(lock)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return worktreeError(fmt.Errorf("lock of branch %s: %w", j.Branch(), err))
	}
	return nil
}

// begin makes the branch, and then the record. A branch without a record is one of an interrupted
// begin; begin goes on if it is still where the job begins.
func (j *Job) begin(ctx context.Context) error {
	at, folder, err := j.branchNow(ctx)
	switch {
	case err != nil:
		return err
	case folder != "":
		return nixie.Errorf(nixie.CodeConflict, "branch %s is checked out in %s, and is not of this job: give the job another name",
			j.Branch(), folder)
	case at != "" && at != j.record.Base:
		return nixie.Errorf(nixie.CodeConflict, "branch %s is there and is not of this job: rename it, or give the job another name",
			j.Branch())
	}
	for _, ref := range []string{j.branchRef(), j.ref()} {
		if _, err := j.git.call(ctx, j.record.Common, "update-ref", ref, j.record.Base); err != nil {
			return nixie.Errorf(nixie.CodeConflict, "branch %s cannot be made: %w", j.Branch(), err)
		}
	}
	return j.writeRecord()
}

// writeRecord writes the record of the job.
func (j *Job) writeRecord() error {
	raw, err := json.Marshal(j.record)
	if err != nil {
		return err
	}
	return writeFile(j.folder(recordFile), raw)
}

// readJSON reads a file of a job, and reports whether it is there.
func readJSON[T any](name string) (v T, there bool, err error) {
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return v, false, worktreeError(fmt.Errorf("%s: %w", name, err))
	}
	return v, true, nil
}

// writeFile writes a file whole; after a power failure it is there.
func writeFile(name string, raw []byte) error {
	return writeFrom(name, bytes.NewReader(append(slices.Clip(raw), '\n')))
}

// writeFrom is writeFile for what may not fit into memory.
func writeFrom(name string, from io.Reader) error {
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err == nil {
		_, err = io.Copy(file, from)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(name))
	}
	if err != nil {
		return worktreeError(fmt.Errorf("state of the job: %w", err))
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

// tip returns the commit at which the work of the job is.
func (j *Job) tip(ctx context.Context) (string, error) {
	return j.git.call(ctx, j.record.Common, "rev-parse", "--verify", "--quiet", j.ref()+"^{commit}")
}

// checkRepository refuses a repository that worktrees would show otherwise than its checkout.
func (j *Job) checkRepository(ctx context.Context) error {
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
	if j.record.Top, err = j.git.call(ctx, j.c.Repo, "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if within(j.record.Top, j.c.State) {
		return nixie.Errorf(nixie.CodeInvalid, "the state %s lies in the repository: name a folder outside", j.c.State)
	}
	if j.record.Base, err = j.git.call(ctx, j.c.Repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s has no commit yet: make one", j.c.Repo)
	}
	if j.record.Target, err = j.git.call(ctx, j.c.Repo, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s is on no branch: check one out, which the work is to be merged into", j.c.Repo)
	}
	changes, err := j.changesIn(ctx, j.record.Top)
	switch {
	case err != nil:
		return err
	case changes != "":
		return nixie.Errorf(nixie.CodeInvalid, "%s has changes that are not committed, which no attempt would see: commit or stash %s",
			j.record.Top, strings.TrimSpace(lines(changes)[0][2:]))
	}
	return j.checkFiles(ctx)
}

// within reports whether a folder is another one or below it.
func within(folder, below string) bool {
	rel, err := filepath.Rel(folder, below)
	return err == nil && filepath.IsLocal(rel)
}

// checkFiles refuses committed files that worktrees would show otherwise than the checkout.
func (j *Job) checkFiles(ctx context.Context) error {
	tree, err := j.git.call(ctx, j.record.Common, "ls-tree", "-r", "-z", j.record.Base)
	if err != nil {
		return err
	}
	ignores, _, err := j.git.exec(ctx, j.record.Common, nil, "config", "--local", "--type=bool", "core.ignoreCase")
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
			return nixie.Errorf(nixie.CodeInvalid, "%s is a submodule, and worktrees have none: take it out, or work in its own repository",
				name)
		case ignores.out == "true" && seen[lower] != "":
			return nixie.Errorf(nixie.CodeInvalid, "%s and %s are one file on this system: rename one", seen[lower], name)
		default:
			seen[lower] = name
		}
		if mode == "120000" {
			links, linked = append(links, name), append(linked, rest[len("blob "):])
		}
		if path.Base(name) == ".gitattributes" {
			text, err := j.git.call(ctx, j.record.Common, "cat-file", "blob", rest[len("blob "):])
			if err != nil {
				return err
			}
			if strings.Contains(text, "filter=lfs") {
				return nixie.Errorf(nixie.CodeInvalid,
					"%s puts files into LFS, and attempts would see pointers: git lfs migrate export brings them back", name)
			}
		}
	}
	for i, name := range links {
		target, err := j.git.call(ctx, j.record.Common, "cat-file", "blob", linked[i])
		if err != nil {
			return err
		}
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
			return nixie.Errorf(nixie.CodeInvalid,
				"%s is a link to %q, outside the repository, where attempts would change the same files: take it out", name, target)
		}
	}
	return nil
}

// Close releases the job after all its attempts have ended. It may be called again.
func (j *Job) Close() error {
	if err := j.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
