// Package mapreduce works on the items of a list in a git repository. Each attempt has a worktree
// of its own. The commits of successful attempts are merged into the branch of the job. The
// worktree of a failed attempt is kept, and its failure names it.
package mapreduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/store"
)

// Config of a map.
type Config struct {
	Job            *worktree.Job
	CommitRequired bool // an attempt that commits nothing has failed
}

// Map gives attempts their worktrees. It is safe for concurrent use.
type Map struct{ c Config }

// New makes a map of an open job.
func New(c Config) *Map { return &Map{c} }

// QueueOf returns the name of the queue that holds the items of a job, if it is the first of that
// name in its store; see [worktree.Job.ChooseQueue].
func QueueOf(job string) string { return itemfile.QueueOf(job) }

// JobOf returns the job of a queue, with the hash of its repository if the queue has one.
func JobOf(queue string) string { return itemfile.JobOf(queue) }

// HeaderRepository is the header of an item that names its repository: the folder that git keeps
// for it.
const HeaderRepository = "repository"

// OwnerOf returns the repository of which a store has items in a queue, and whether there are any.
// It is empty if the newest item does not say so.
func OwnerOf(ctx context.Context, st store.Overview, queue string) (repository string, any bool, err error) {
	f := nixie.Filter{Queues: []string{queue, PhaseQueue(queue, Setup)}} // a setup is there before the first item
	found, _, err := st.Messages(ctx, f, store.Page{Limit: 1})
	if err != nil || len(found) == 0 {
		return "", false, err
	}
	return found[0].Header(HeaderRepository), true, nil
}

// Attempt works on one item, in its worktree.
type Attempt struct {
	m    *Map
	tree *worktree.Tree
	died bool // the item has a letter, which names the logs of its attempts

	phase string   // instead of an item
	more  []string // variables of a phase
}

// Begin gives an attempt a worktree. It returns nil for an item that is merged already: the process
// that merged it vanished before it settled the item.
func (m *Map) Begin(ctx context.Context, d *nixie.Delivery) (*Attempt, error) {
	item := d.Key
	if done, err := m.c.Job.Merged(ctx, item); err != nil || done != "" {
		return nil, during("worktree", item, err)
	}
	tree, err := m.c.Job.Attempt(ctx, item, d.Lease.Number)
	if err != nil {
		return nil, during("worktree", item, err)
	}
	return &Attempt{m: m, tree: tree, died: d.Redrives > 0}, nil
}

// Dir returns the folder of the worktree.
func (a *Attempt) Dir() string { return a.tree.Path }

// Environ returns the environment that commands inherit there.
func (a *Attempt) Environ() []string { return append(a.tree.Environ(), a.more...) }

// ItemFile returns a path for the item.
func (a *Attempt) ItemFile() string { return a.tree.File(worktree.ItemFile) }

// ResultFile returns a path for the result of the item.
func (a *Attempt) ResultFile() string { return a.tree.File(worktree.ResultFile) }

// LogFile returns a path for the log of agents. Those of failed attempts stay until the job is
// cleaned, or the item succeeds without having died.
func (a *Attempt) LogFile() string { return a.tree.Log() }

// Head returns the commit that is checked out.
func (a *Attempt) Head(ctx context.Context) (string, error) { return a.tree.Head(ctx) }

// Committed returns an error if the commit that is checked out is still the one before a step.
func (a *Attempt) Committed(ctx context.Context, since string) error {
	head, err := a.tree.Head(ctx)
	if err != nil || head != since {
		return err
	}
	changes, err := a.tree.Changes(ctx)
	if err != nil {
		return err
	}
	return noCommit(head, changes)
}

// during adds to a failure that belongs to no step what the attempt was doing.
func during(doing, item string, err error) error {
	if err == nil {
		return nil
	}
	facts := evidenceOf(err)
	facts.Step, facts.Context = doing, []string{"item " + item}
	return nixie.WithEvidence(err, facts)
}

// evidenceOf returns the evidence that an error carries.
func evidenceOf(err error) nixie.Failure {
	if evidence := nixie.OutcomeOf(err).Evidence; evidence != nil {
		return *evidence
	}
	return nixie.Failure{}
}

// Check refuses an attempt that committed nothing although it should have: its changes would be
// lost. What a phase leaves uncommitted is there for later ones.
func (a *Attempt) Check(ctx context.Context) error {
	if a.phase != "" {
		return nil
	}
	return during("commit check", a.tree.Item, a.check(ctx))
}

func (a *Attempt) check(ctx context.Context) error {
	head, err := a.tree.Head(ctx)
	if err != nil || head != a.tree.Start {
		return err
	}
	changes, err := a.tree.Changes(ctx)
	if err != nil {
		return err
	}
	if a.m.c.CommitRequired || changes != "" {
		return noCommit(head, changes)
	}
	return nil
}

// End merges the commits of an attempt without an error. It keeps the worktree of a failed attempt
// and names it in the failure. When ctx has ended the item comes back, and nothing is merged or
// kept. Nor is anything when the disk is full: then the error is a [*command.FullError].
func (a *Attempt) End(ctx context.Context, err error) error {
	if a.phase != "" {
		return a.endPhase(ctx, err)
	}
	if ctx.Err() != nil {
		a.tree.Release()
		return errors.Join(err, ctx.Err())
	}
	if err == nil {
		err = a.merge(ctx)
	}
	if err != nil {
		if full := a.tree.Full(err); full != nil {
			a.tree.Discard()
			return nixie.WithEvidence(full, evidenceOf(err))
		}
		return a.keep(ctx, err)
	}
	a.tree.Release()
	_ = a.m.c.Job.ForgetItem(ctx, a.tree.Item, a.tree.Lease+1) // it is merged; what stays goes with the job
	if !a.died {
		_ = a.m.c.Job.ForgetLogs(a.tree.Item) // likewise
	}
	return nil
}

// merge merges the commits of the attempt, after it has kept the result.
func (a *Attempt) merge(ctx context.Context) error {
	result, err := a.result()
	if err != nil {
		return during("result", a.tree.Item, err)
	}
	_, err = a.tree.Merge(ctx, "item "+a.tree.Item, result)
	return during("merge", a.tree.Item, err)
}

// MaxResult limits the bytes of the result of an item.
const MaxResult = 1 << 20

// result reads the result that the attempt wrote; nil means none.
func (a *Attempt) result() (json.RawMessage, error) {
	raw, err := command.TakeFile(a.ResultFile(), MaxResult+1)
	switch {
	case err != nil:
	case raw == nil:
		return nil, nil
	case len(raw) > MaxResult:
		err = nixie.Errorf(nixie.CodeLimit, "it has more than %d bytes, the limit", MaxResult)
	case !utf8.Valid(raw) || !json.Valid(raw):
		err = nixie.Errorf(nixie.CodeInvalid, "it is no JSON")
	}
	if err != nil {
		return nil, nixie.WithReason(fmt.Errorf("result in $NIXIE_RESULT_FILE: %w", err), nixie.ReasonValidation)
	}
	return raw, nil
}

// noCommit returns the failure of an attempt that should have committed something. Without it the
// work would be lost in silence.
func noCommit(head, changes string) error {
	why := "nothing was changed, or what was changed is ignored, or it was committed on another branch"
	if changes != "" {
		why = fmt.Sprintf("files changed and not committed: %d", strings.Count(changes, "\n")+1)
	}
	return nixie.WithReason(fmt.Errorf("no commit: HEAD is %s, before and after: %s", head, why), nixie.ReasonNoCommit)
}

// keep takes the worktree out of use and names it in the failure. It removes what was kept of
// earlier attempts of the item.
func (a *Attempt) keep(ctx context.Context, failure error) error {
	ctx = context.WithoutCancel(ctx)
	changes, _ := a.tree.Changes(ctx) // none are known of a worktree that the attempt broke
	kept, err := a.tree.Keep(ctx)
	if err != nil {
		return errors.Join(failure, err)
	}
	facts := evidenceOf(failure)
	if _, err := os.Stat(a.LogFile()); err == nil {
		facts.LogLocation = a.LogFile()
	}
	facts.Attachments = slices.Clone(facts.Attachments)
	for _, known := range []struct{ name, text string }{
		{itemfile.ArtifactPath, kept.Path}, {itemfile.ArtifactBranch, kept.Branch}, {itemfile.ArtifactChanges, changes},
	} {
		if known.text != "" {
			facts.Attachments = append(facts.Attachments,
				nixie.Attachment{Name: known.name, Data: []byte(known.text[:min(len(known.text), nixie.MaxAttachment)])})
		}
	}
	if err := a.m.c.Job.ForgetItem(ctx, kept.Item, kept.Lease); err != nil {
		failure = errors.Join(failure, err)
	}
	return nixie.WithEvidence(failure, facts)
}
