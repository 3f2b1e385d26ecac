package worktree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// Known is a job that was begun, as its files have it. They may be read while another process works
// on the job. It asks no git.
type Known struct{ j *Job }

// Find finds the job of a name that is about the repository of c.Repo. Without a repository it is
// the only job of that name, or else that of the repository in which this process is. The queue of
// a job without mapreduce/ is a name too, and no other job has it. A job that is not there is a
// CodeNotFound; several that may be meant are a CodeInvalid that names their repositories.
func Find(ctx context.Context, c Config) (*Known, error) {
	c.Existing = true
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := newGit(c.Git, c.Environ, c.Deadline)
	if err != nil {
		return nil, err
	}
	j, err := locate(ctx, c, g)
	return &Known{j}, err
}

// hashedName matches the end of a folder or queue whose name has the hash of a repository.
var hashedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`~[0-9a-f]{8}$`) })

// plain removes the hash of a repository from a name.
func plain(name string) string { return hashedName().ReplaceAllString(name, "") }

// hashed adds the hash of a repository to the name of a folder or queue.
func hashed(name, common string) string {
	sum := sha256.Sum256([]byte(common))
	return fmt.Sprintf("%s~%x", name, sum[:4])
}

// locate returns the job of a configuration. One that was not begun has no record yet, except for
// the repository that it will be about.
func locate(ctx context.Context, c Config, g *git) (*Job, error) {
	all, err := recorded(c.State, refName(c.Job), refName(plain(c.Job)))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(j *Job) bool { return j.record.Job != c.Job && j.Queue() != itemfile.QueueOf(c.Job) })
	repo := c.Repo
	if repo == "" {
		if len(all) == 0 {
			return nil, unknownJob(c.Job)
		}
		if len(all) == 1 && !all[0].gone() {
			return all[0].opened(c, g), nil
		}
		repo = "."
	}
	common, err := g.commonOf(ctx, repo)
	switch {
	case err != nil && c.Repo == "":
		return all[0].opened(c, g), several(c.Job, all)
	case err != nil && c.Existing && len(all) > 0:
		return nil, nixie.Errorf(nixie.CodeNotFound, "%s is not in a git repository, and job %s is about %s: name that by --repo",
			repo, c.Job, repositories(all))
	case err != nil:
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s is not in a git repository: name a folder that is", repo)
	}
	for _, j := range all {
		if j.record.Common == common {
			return j.opened(c, g), nil
		}
	}
	for _, j := range all {
		if j.opened(c, g).movedTo(ctx, repo, common) {
			return j, nil
		}
	}
	switch {
	case c.Repo == "":
		return all[0].opened(c, g), several(c.Job, all)
	case c.Existing && len(all) > 0:
		return nil, nixie.Errorf(nixie.CodeNotFound,
			"job %s is about the repository %s, and %s is in %s: name the one, or begin a job there",
			c.Job, repositories(all), repo, common)
	case c.Existing:
		return nil, unknownJob(c.Job)
	}
	j := &Job{dir: hashed(refName(c.Job), common), record: record{Job: c.Job, Common: common}}
	return j.opened(c, g), nil
}

// opened prepares a job of a record for use.
func (j *Job) opened(c Config, g *git) *Job {
	if c.Repo == "" {
		c.Repo = j.record.Common
	}
	c.Job = j.record.Job
	j.c, j.git, j.name = c, g, refName(c.Job)
	return j
}

// several returns an error for jobs of which none is about the repository of this process; one is
// enough.
func several(name string, all []*Job) error {
	if len(all) == 1 {
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "%d repositories have a job %s: name one by --repo: %s", len(all), name, repositories(all))
}

// repositories lists those of jobs.
func repositories(all []*Job) string {
	var list []string
	for _, j := range all {
		list = append(list, j.record.Common)
	}
	return strings.Join(list, ", ")
}

// commonOf returns the folder that git keeps for the repository of a folder: the same for all its
// worktrees, without links.
func (g *git) commonOf(ctx context.Context, folder string) (string, error) {
	return g.call(ctx, folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
}

// gone reports whether nothing is any more where the repository was.
func (j *Job) gone() bool {
	_, err := os.Stat(j.record.Common)
	return errors.Is(err, fs.ErrNotExist)
}

// movedTo makes the job one of another repository and returns true, if its own was moved there. So
// it was if it is gone and the other one has the work of the job.
func (j *Job) movedTo(ctx context.Context, repo, common string) bool {
	if !j.gone() {
		return false
	}
	has, err := j.git.call(ctx, common, "merge-base", j.record.Base, j.ref())
	if err != nil || has != j.record.Base {
		return false
	}
	top, err := j.git.call(ctx, repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return false
	}
	if main := filepath.Dir(common); filepath.Base(common) == ".git" && j.record.Top == filepath.Dir(j.record.Common) {
		top = main
	}
	j.left = j.record.Top
	j.record.Common, j.record.Top, j.c.Repo = common, top, common
	return true
}

// settle keeps that the repository was moved. Git gets to know the worktrees of the job again.
func (j *Job) settle(ctx context.Context) error {
	r, err := j.invocation()
	if err == nil {
		err = j.SaveInvocation(r)
	} else if errors.Is(err, fs.ErrNotExist) { // it was killed before it had begun
		err = nil
	}
	if err == nil {
		err = withRepositoryLock(j.record.Common, func() error {
			_, err := j.git.call(ctx, j.record.Common, "worktree", "repair")
			return err
		})
	}
	if err != nil {
		return err
	}
	j.left = ""
	return j.writeRecord()
}

// Queue returns the queue of the job's items.
func (j *Job) Queue() string {
	simple := itemfile.QueueOf(j.record.Job)
	switch {
	case j.record.Queue != "":
		return j.record.Queue
	case j.dir == refName(j.record.Job): // begun by a build that had one job of a name
		return simple
	}
	return hashed(simple, j.record.Common) // none has it before it is chosen
}

// ChooseQueue returns the queue of the job's items in a store. Once it is chosen it stays. The
// queue with the plain name belongs to the first repository that has a job of that name in the
// store. Others have the hash of their repository behind it, and so has a job whose plain queue
// belongs to another one in a further store. Owner returns the repository of which the store has
// items in a queue, empty if they do not say so, and whether there are any.
func (j *Job) ChooseQueue(store string, owner func(queue string) (repository string, any bool, err error)) (string, error) {
	if queue := j.record.Queue; queue != "" && (j.record.Store == store || plain(queue) != queue) {
		return queue, nil
	}
	err := withLock(j.c.State+".lock", func() error { // two jobs that begin at the same time get two queues
		simple := itemfile.QueueOf(j.record.Job)
		of, there, err := owner(simple)
		if err != nil {
			return err
		}
		others, err := recorded(j.c.State, j.name)
		if err != nil {
			return err
		}
		mine := j.dir == refName(j.record.Job) // it is older than the choice
		taken := of != "" && of != j.record.Common || of == "" && !mine && slices.ContainsFunc(others, func(other *Job) bool {
			return other.dir != j.dir && other.Queue() == simple && (other.record.Store == store || other.record.Store == "" && there)
		})
		j.record.Queue, j.record.Store = simple, store
		if taken {
			j.record.Queue = hashed(simple, j.record.Common)
		}
		return j.writeRecord()
	})
	return j.Queue(), err
}

// withRepositoryLock calls do while no other process adds or removes worktrees of the repository.
func withRepositoryLock(common string, do func() error) error {
	return withLock(common+"/nixie.lock", do)
}

// Repository returns the folder that git keeps for the repository of the job.
func (j *Job) Repository() string { return j.record.Common }
