package worktree

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// branch is what this process knows of the branch of its job. As nobody else moves it, it is
// read once, and anew when it was not where it was to be or a call that moves it had no
// answer: to ask git for each item would take longer the more items there are.
type branch struct {
	mu     sync.Mutex
	tip    string            // empty: it is to be read
	merged map[string]string // commits by the trailers of the items that they merged, without the lease
}

// page is how many merges are read in one call.
const page = 50_000

// read returns the tip, and the commit that merged an item, if there is one.
func (b *branch) read(ctx context.Context, j *Job, item string) (tip, commit string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tip == "" {
		if err := b.fill(ctx, j); err != nil {
			return "", "", err
		}
	}
	return b.tip, b.merged[j.of(item)], nil
}

func (b *branch) fill(ctx context.Context, j *Job) error {
	tip, err := j.tip(ctx)
	if err != nil {
		return err
	}
	b.merged = map[string]string{}
	for read := 0; ; read += page {
		text, err := j.git.call(ctx, j.note.Common, "log", "--first-parent", fmt.Sprint("--skip=", read), fmt.Sprint("--max-count=", page),
			"--format=%H %(trailers:key="+strings.TrimSuffix(trailer, ": ")+",valueonly,separator=%x20)", j.note.Base+".."+tip)
		if err != nil {
			return err
		}
		merges := lines(text)
		for _, line := range merges {
			commit, of, _ := strings.Cut(line, " ")
			if at := strings.LastIndexByte(of, '/'); at > 0 {
				b.merged[trailer+of[:at+1]] = commit
			}
		}
		if len(merges) < page {
			b.tip = tip
			return nil
		}
	}
}

// move notes a merge.
func (b *branch) move(commit, of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip, b.merged[of] = commit, commit
}

// forget lets the branch be read anew.
func (b *branch) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip = ""
}
