package worktree

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// branchCache holds the tip and the merges of the job's branch. Only this process moves the branch,
// so it is read once: asking git for each item would take longer the more items there are. It is
// read again when the branch was elsewhere than expected or a call that moves it had no answer.
type branchCache struct {
	mu     sync.Mutex
	tip    string            // empty: it is to be read
	merged map[string]string // commits by the trailers of the items that they merged, without the lease
}

// page is the number of merges that one call reads.
const page = 50_000

// read returns the tip, and the commit that merged an item, if there is one.
func (b *branchCache) read(ctx context.Context, j *Job, item string) (tip, commit string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tip == "" {
		if err := b.fill(ctx, j); err != nil {
			return "", "", err
		}
	}
	return b.tip, b.merged[j.trailerOf(item)], nil
}

func (b *branchCache) fill(ctx context.Context, j *Job) error {
	tip, err := j.tip(ctx)
	if err != nil {
		return err
	}
	b.merged = map[string]string{}
	for read := 0; ; read += page {
		text, err := j.git.call(ctx, j.record.Common, "log", "--first-parent", fmt.Sprint("--skip=", read),
			fmt.Sprint("--max-count=", page),
			"--format=%H %(trailers:key="+strings.TrimSuffix(trailer, ": ")+",valueonly,separator=%x20)", j.record.Base+".."+tip)
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

// set makes a merge commit the known tip.
func (b *branchCache) set(commit, of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip, b.merged[of] = commit, commit
}

// invalidate makes the next read ask git.
func (b *branchCache) invalidate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tip = ""
}
