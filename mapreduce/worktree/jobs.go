package worktree

import (
	"errors"
	"io/fs"
	"os"

	"github.com/nixie-go/nixie"
)

// Summary is a job as it is noted.
type Summary struct {
	Job    string `json:"job"`
	Repo   string `json:"repo"`   // the user's checkout
	Branch string `json:"branch"` // of the job
	Target string `json:"target"` // the branch that was checked out when it began
	Base   string `json:"base"`   // the commit at which it began
	Kept   int    `json:"kept"`   // worktrees of items that failed
}

// Jobs lists the jobs that have their state in a folder, by name. It asks no git, and a job
// that somebody works on is no hindrance.
func Jobs(state string) (all []Summary, err error) {
	folders, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, broken(err)
	}
	for _, folder := range folders {
		j := &Job{c: Config{State: state}, name: folder.Name()}
		known, err := j.recall()
		if err != nil {
			return nil, err
		}
		if !known {
			continue // one that is about to begin
		}
		kept, err := j.Kept()
		if err != nil {
			return nil, err
		}
		all = append(all, Summary{j.note.Job, j.note.Top, j.Branch(), short(j.note.Target), j.note.Base, len(kept)})
	}
	return all, nil
}

// KeptOf lists what was kept of a job, also while somebody works on it.
func KeptOf(state, job string) ([]Kept, error) {
	j := &Job{c: Config{State: state, Job: job}, name: refName(job)}
	known, err := j.recall()
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, unknownJob(job)
	}
	return j.Kept()
}

func unknownJob(name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "there is no job %s: nixie map run begins one, nixie map list lists them", name)
}
