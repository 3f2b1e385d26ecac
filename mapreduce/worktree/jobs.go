package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
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
		begun, err := j.recall()
		if err != nil {
			return nil, err
		}
		if !begun {
			continue // one that is about to begin
		}
		s, err := j.summary()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// KeptOf lists what was kept of a job, also while somebody works on it.
func KeptOf(state, job string) ([]Kept, error) {
	j, err := known(state, job)
	if err != nil {
		return nil, err
	}
	return j.Kept()
}

// known is a job that was begun, to be looked at.
func known(state, job string) (*Job, error) {
	j := &Job{c: Config{State: state, Job: job}, name: refName(job)}
	begun, err := j.recall()
	if err == nil && !begun {
		err = unknownJob(job)
	}
	return j, err
}

func unknownJob(name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "there is no job %s: nixie map run begins one, nixie map list lists them", name)
}

// Run is how a job was run, to run it so again. It is for the user's eyes only.
type Run struct {
	Folder string   `json:"folder"` // where that was typed
	Store  string   `json:"store"`  // that was named; empty is the usual one
	List   string   `json:"list"`
	Flags  []string `json:"flags"`
	Args   []string `json:"args"` // the command; none if flags say what to do
}

const runFile = "run.json"

// Remember keeps how the job is run.
func (j *Job) Remember(r Run) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(j.folder(runFile), raw)
}

// RunOf is how a job was run last.
func RunOf(state, job string) (r Run, err error) {
	j, err := known(state, job)
	if err != nil {
		return r, err
	}
	raw, err := os.ReadFile(j.folder(runFile))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, broken(fmt.Errorf("%s: %w", j.folder(runFile), err))
	}
	return r, nil
}

// SummaryOf is one job as it is noted.
func SummaryOf(state, job string) (Summary, error) {
	j, err := known(state, job)
	if err != nil {
		return Summary{}, err
	}
	return j.summary()
}

// summary is what is noted of a job.
func (j *Job) summary() (Summary, error) {
	kept, err := j.Kept()
	return Summary{j.note.Job, j.note.Top, j.Branch(), short(j.note.Target), j.note.Base, len(kept)}, err
}
