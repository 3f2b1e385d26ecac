package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nixie-go/nixie"
)

// Summary describes a job as its record has it.
type Summary struct {
	Job    string `json:"job"`
	Repo   string `json:"repo"`   // the user's checkout
	Branch string `json:"branch"` // of the job
	Target string `json:"target"` // the branch that was checked out when it began
	Base   string `json:"base"`   // the commit at which it began
	Kept   int    `json:"kept"`   // worktrees of items that failed
}

// Jobs lists the jobs that have their state in a folder, by name. It asks no git. It reads a job
// also while another process works on it.
func Jobs(state string) (all []Summary, err error) {
	folders, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, worktreeError(err)
	}
	for _, folder := range folders {
		j := &Job{c: Config{State: state}, name: folder.Name()}
		begun, err := j.readRecord()
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

// KeptOf lists the kept worktrees of a job, also while another process works on it.
func KeptOf(state, job string) ([]Kept, error) {
	j, err := recorded(state, job)
	if err != nil {
		return nil, err
	}
	return j.Kept()
}

// recorded opens a job that was begun, for reading only.
func recorded(state, job string) (*Job, error) {
	j := &Job{c: Config{State: state, Job: job}, name: refName(job)}
	begun, err := j.readRecord()
	if err == nil && !begun {
		err = unknownJob(job)
	}
	return j, err
}

func unknownJob(name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "there is no job %s: nixie map run begins one, nixie map list lists them", name)
}

// Invocation records the command line of a job, to run it so again. Only the user may read it.
type Invocation struct {
	Folder string   `json:"folder"` // where that was typed
	Store  string   `json:"store"`  // that was named; empty is the usual one
	List   string   `json:"list"`
	Flags  []string `json:"flags"`
	Args   []string `json:"args"` // the command; none if flags name the steps
}

const invocationFile = "run.json"

// SaveInvocation keeps the command line of the job.
func (j *Job) SaveInvocation(r Invocation) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(j.folder(invocationFile), raw)
}

// InvocationOf returns the last command line of a job.
func InvocationOf(state, job string) (r Invocation, err error) {
	j, err := recorded(state, job)
	if err != nil {
		return r, err
	}
	raw, err := os.ReadFile(j.folder(invocationFile))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, worktreeError(fmt.Errorf("%s: %w", j.folder(invocationFile), err))
	}
	return r, nil
}

// SummaryOf describes one job as its record has it.
func SummaryOf(state, job string) (Summary, error) {
	j, err := recorded(state, job)
	if err != nil {
		return Summary{}, err
	}
	return j.summary()
}

// summary describes the job as its record has it.
func (j *Job) summary() (Summary, error) {
	kept, err := j.Kept()
	return Summary{j.record.Job, j.record.Top, j.Branch(), shortRef(j.record.Target), j.record.Base, len(kept)}, err
}
