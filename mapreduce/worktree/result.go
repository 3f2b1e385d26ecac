package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/nixie-go/nixie"
)

// Result is the result of a successful item, as its attempt wrote it.
type Result struct {
	Item   string          `json:"item"`
	Lease  int64           `json:"lease"`  // number of the attempt's lease
	Commit string          `json:"commit"` // what the attempt committed last; empty is nothing
	Result json.RawMessage `json:"result"`
}

// resultOf returns the file of an item's result.
func (j *Job) resultOf(item string) string { return j.folder("results", refName(item)+".json") }

// keepResult writes the result of the attempt and syncs it to disk.
func (t *Tree) keepResult(head string, result json.RawMessage) error {
	if result == nil {
		return nil
	}
	r := Result{Item: t.Item, Lease: t.Lease, Result: result}
	if head != t.Start {
		r.Commit = head
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return worktreeError(fmt.Errorf("result: %w", err))
	}
	return writeFile(t.job.resultOf(t.Item), raw)
}

// ResultOf returns the result of a successful item; nil means none.
func (j *Job) ResultOf(item string) (json.RawMessage, error) {
	r, _, err := readJSON[Result](j.resultOf(item))
	return r.Result, err
}

// dropResult removes the result of an attempt whose merge failed. It leaves it when the item was
// merged after all, or when git cannot tell: then the next attempt removes it.
func (t *Tree) dropResult(ctx context.Context) error {
	if _, done, err := t.job.branch.read(ctx, t.job, t.Item); err != nil || done != "" {
		return nil
	}
	return os.RemoveAll(t.job.resultOf(t.Item))
}

// Results yields the results of the job's items in the order of their file names, also while
// another process works on the job.
func (k Known) Results() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		j := k.j
		entries, err := os.ReadDir(j.folder("results"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Result{}, worktreeError(err))
			return
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".json") {
				continue // one that is being written
			}
			var r Result
			raw, err := os.ReadFile(filepath.Join(j.folder("results"), entry.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // its item is worked on anew
			}
			if err == nil {
				err = json.Unmarshal(raw, &r)
			}
			if err != nil {
				err = nixie.Errorf(nixie.CodeInvalid, "%s: %w", j.folder("results", entry.Name()), err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
