package worktree

import (
	"encoding/json"
	"io"
	"os"
)

// Workflow is the workflow file of a job, as it was when the job was run last.
type Workflow struct {
	Path string `json:"path"` // absolute
	Text string `json:"text"`
}

const workflowFile = "workflow.json"

// SaveWorkflow keeps the workflow file of the job.
func (j *Job) SaveWorkflow(w Workflow) error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return writeFile(j.folder(workflowFile), raw)
}

// Workflow returns the workflow file of the job, and whether it has one.
func (j *Job) Workflow() (w Workflow, is bool, err error) {
	return readJSON[Workflow](j.folder(workflowFile))
}

// Workflow returns the workflow file of the job, and whether it has one.
func (k Known) Workflow() (Workflow, bool, error) { return k.j.Workflow() }

// inputFile is the list of a workflow as it was when the job took its items in: later phases may
// change the file that it came from.
const inputFile = "input"

// Input returns the path of the list of the job, and whether it was kept.
func (j *Job) Input(suffix string) (path string, is bool) {
	path = j.folder(inputFile + suffix)
	_, err := os.Stat(path)
	return path, err == nil
}

// KeepInput keeps the list of the job and returns its path.
func (j *Job) KeepInput(suffix string, from io.Reader) (path string, err error) {
	path = j.folder(inputFile + suffix)
	return path, writeFrom(path, from)
}

// valuesOf returns the file of the values that the steps of a phase made known.
func (j *Job) valuesOf(phase string) string { return j.folder("values", phase+".json") }

// SaveValues keeps the values that the steps of a phase made known, for later phases.
func (j *Job) SaveValues(phase string, values map[string]json.RawMessage) error {
	raw, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return writeFile(j.valuesOf(phase), raw)
}

// Values returns the values that the steps of a phase made known; none if it has not succeeded.
func (j *Job) Values(phase string) (map[string]json.RawMessage, error) {
	values, _, err := readJSON[map[string]json.RawMessage](j.valuesOf(phase))
	return values, err
}
