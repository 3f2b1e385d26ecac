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

// Result is what an item that succeeded came to, as its attempt said it.
type Result struct {
	Item   string          `json:"item"`
	Lease  int64           `json:"lease"`  // number of the attempt's lease
	Commit string          `json:"commit"` // what the attempt committed last; empty is nothing
	Result json.RawMessage `json:"result"`
}

// resultOf is the file of an item's result.
func (j *Job) resultOf(item string) string { return j.folder("results", refName(item)+".json") }

// keepResult writes the result of the attempt, which is on disk then.
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
		return broken(fmt.Errorf("result: %w", err))
	}
	return writeFile(t.job.resultOf(t.Item), raw)
}

// dropResult removes the result of an attempt that failed at the very end, unless it was
// merged all the same, or nobody can tell: then the next attempt does.
func (t *Tree) dropResult(ctx context.Context) error {
	if _, done, err := t.job.branch.read(ctx, t.job, t.Item); err != nil || done != "" {
		return nil
	}
	return os.RemoveAll(t.job.resultOf(t.Item))
}

// ResultsOf yields the results that items of a job came to, by the names of their files,
// also while somebody works on it.
func ResultsOf(state, job string) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		j, err := known(state, job)
		if err != nil {
			yield(Result{}, err)
			return
		}
		entries, err := os.ReadDir(j.folder("results"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Result{}, broken(err))
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
