package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
)

// Checkout is the user's checkout, for steps that merge the branch of the job there.
type Checkout struct {
	Path  string
	job   *Job
	lease int64
}

// mergeItem names the files of merge steps.
const mergeItem = phaseMark + "merge"

// Checkout prepares the user's checkout as [Job.Deliver] does. An attempt after another one first
// ends the merge that the other left unfinished.
func (j *Job) Checkout(ctx context.Context, lease int64, repeated bool) (*Checkout, error) {
	c := &Checkout{j.record.Top, j, lease}
	if repeated {
		if err := c.AbortMerge(ctx); err != nil {
			return nil, err
		}
	}
	return c, j.mayDeliver(ctx)
}

// File returns the path of a file next to the worktrees of the job.
func (c *Checkout) File(kind string) string { return c.job.folder("pool", "merge") + kind }

// Log returns the path of the log of the attempt.
func (c *Checkout) Log() string {
	return filepath.Join(c.job.logsOf(mergeItem), strconv.FormatInt(c.lease, 10)+".log")
}

// Environ returns the environment of commands there. In it git works in no other repository.
func (c *Checkout) Environ() []string { return withoutRepository(c.job.c.Environ) }

// Head returns the commit that is checked out now.
func (c *Checkout) Head(ctx context.Context) (string, error) {
	return c.job.git.call(ctx, c.Path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
}

// AbortMerge ends a merge that is not done.
func (c *Checkout) AbortMerge(ctx context.Context) error {
	merging, err := c.job.git.call(ctx, c.Path, "rev-parse", "--git-path", "MERGE_HEAD")
	if err != nil {
		return err
	}
	if _, err := os.Stat(absolute(c.Path, merging)); err != nil {
		return nil //nolint:nilerr // there is none
	}
	_, err = c.job.git.call(ctx, c.Path, "merge", "--abort")
	return err
}
