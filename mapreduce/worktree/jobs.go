package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nixie-go/nixie"
)

// Summary describes a job as its record has it.
type Summary struct {
	Job    string `json:"job"`
	Queue  string `json:"queue"`  // of its items
	Repo   string `json:"repo"`   // the user's checkout
	Branch string `json:"branch"` // of the job
	Target string `json:"target"` // the branch that was checked out when it began
	Base   string `json:"base"`   // the commit at which it began
	Kept   int    `json:"kept"`   // worktrees of items that failed
}

// Jobs lists the jobs that have their state in a folder, by name. It asks no git. It reads a job
// also while another process works on it.
func Jobs(state string) (all []Summary, err error) {
	jobs, err := Begun(state)
	for _, job := range jobs {
		s, err := job.Summary()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

// Begun is Jobs, for reading more of each.
func Begun(state string) (all []Known, err error) {
	jobs, err := recorded(state)
	for _, j := range jobs {
		all = append(all, Known{j})
	}
	return all, err
}

// recorded lists the jobs that were begun and whose folder has one of some names, with or without
// the hash of a repository. No names are all jobs.
func recorded(state string, names ...string) (all []*Job, err error) {
	folders, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, worktreeError(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() || len(names) > 0 && !slices.Contains(names, plain(folder.Name())) {
			continue
		}
		j := &Job{c: Config{State: state}, dir: folder.Name()}
		begun, err := j.readRecord()
		if err != nil {
			return nil, err
		}
		if !begun {
			continue // one that is about to begin
		}
		j.c.Job, j.name = j.record.Job, refName(j.record.Job)
		all = append(all, j)
	}
	return all, nil
}

func unknownJob(name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "there is no job %s: nixie map run begins one, nixie map list lists them", name)
}

// Summary describes the job.
func (k Known) Summary() (Summary, error) {
	r := &k.j.record
	kept, err := k.Kept()
	return Summary{r.Job, k.Queue(), r.Top, k.j.Branch(), shortRef(r.Target), r.Base, len(kept)}, err
}

// Queue returns the queue of the job's items.
func (k Known) Queue() string { return k.j.Queue() }

// Kept lists the kept worktrees of the job.
func (k Known) Kept() ([]Kept, error) { return k.j.Kept() }

// Invocation records the command line of a job, to run it so again. Only the user may read it.
type Invocation struct {
	Folder string   `json:"folder"`          // where that was typed
	Store  string   `json:"store"`           // that was named; empty is the usual one
	List   string   `json:"list"`            // or the workflow file
	Items  string   `json:"items,omitempty"` // the list that was given with a workflow file
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

// Invocation returns the last command line of the job. Where it names a folder of a repository that
// was moved, it is the folder there.
func (k Known) Invocation() (Invocation, error) { return k.j.invocation() }

func (j *Job) invocation() (r Invocation, err error) {
	raw, err := os.ReadFile(j.folder(invocationFile))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, worktreeError(fmt.Errorf("%s: %w", j.folder(invocationFile), err))
	}
	if rel, err := filepath.Rel(j.left, r.Folder); j.left != "" && err == nil && filepath.IsLocal(rel) {
		r.Folder = filepath.Join(j.record.Top, rel)
	}
	return r, nil
}
