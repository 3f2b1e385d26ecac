package cli

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// worktrees returns the folder of all jobs.
func (g *globals) worktrees() string { return filepath.Join(config.StateFolder(g.Env), "worktrees") }

// known finds a job on this machine.
func (g *globals) known(ctx context.Context, of jobFlag) (*worktree.Known, error) {
	return worktree.Find(ctx, worktree.Config{Repo: of.repo, State: g.worktrees(), Job: of.job, Environ: config.Inherited()})
}

// jobQueue returns the queue of a job. One that is not on this machine has the queue of its name.
// In a folder of items that may be a job of another program.
func (g *globals) jobQueue(ctx context.Context, o *office.Office, of jobFlag) (string, error) {
	simple := mapreduce.QueueOf(of.job)
	job, err := g.known(ctx, of)
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound && of.repo == "":
		return simple, nil
	case err != nil:
		return "", err
	}
	if _, is := g.itemFolder(); is && job.Queue() != simple {
		if _, err := o.Queue(ctx, simple); err == nil {
			return simple, nil
		}
	}
	return job.Queue(), nil
}

// jobQueues returns the queue of a job, and those of its phases if it has a workflow file.
func (g *globals) jobQueues(ctx context.Context, o *office.Office, of jobFlag) ([]string, error) {
	queue, err := g.jobQueue(ctx, o, of)
	if err != nil {
		return nil, err
	}
	return g.withPhases(ctx, of, queue)
}

// withPhases returns a queue of items and those of the phases of its job, if the job has a workflow
// file here.
func (g *globals) withPhases(ctx context.Context, of jobFlag, queue string) ([]string, error) {
	all := []string{queue}
	job, err := g.known(ctx, of)
	if nixie.CodeOf(err) == nixie.CodeNotFound {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	_, is, err := job.Workflow()
	if is {
		for _, phase := range mapreduce.Phases() {
			all = append(all, mapreduce.PhaseQueue(queue, phase))
		}
	}
	return all, err
}

// ofQueue returns the flags that name the job with a queue: those of a job on this machine, if it
// is there.
func (g *globals) ofQueue(queue string) (jobFlag, error) {
	jobs, err := worktree.Jobs(g.worktrees())
	if i := slices.IndexFunc(jobs, func(s worktree.Summary) bool { return s.Queue == queue }); i >= 0 {
		return jobFlag{jobs[i].Job, jobs[i].Repo}, err
	}
	return jobFlag{job: mapreduce.JobOf(queue)}, err
}

// words writes the flags that name the job, for a command to be typed anywhere.
func (j jobFlag) words(g *globals) string {
	text := "--job " + quote(j.job)
	jobs, _ := worktree.Jobs(g.worktrees()) // only a hint
	same := 0
	for _, s := range jobs {
		if s.Job == j.job {
			same++
		}
	}
	if repo, err := filepath.Abs(j.repo); same > 1 && err == nil && j.repo != "" {
		text += " --repo " + quote(repo)
	}
	return text
}

// chooseQueue returns the queue of the items of an open job in a store.
func (m *mapRun) chooseQueue(ctx context.Context, job *worktree.Job, st store.Store) (string, error) {
	name, err := storeName(m.store, "", m.Env)
	if err != nil {
		return "", err
	}
	return job.ChooseQueue(name, func(queue string) (string, bool, error) { return mapreduce.OwnerOf(ctx, st, queue) })
}
