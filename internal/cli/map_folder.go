package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// mirrorEvery is the time between two searches for letters without a file.
const mirrorEvery = 2 * time.Second

// mirrorTo keeps a folder up to date with the letters of the job until end is called.
func (m *mapRun) mirrorTo(ctx context.Context, folder string, st store.Store) (end func() error, err error) {
	o, err := office.New(office.Config{Store: st, Actor: config.Actor(m.Env), Clock: m.Now})
	if err != nil {
		return nil, err
	}
	to, err := m.openMirror(letterfile.MirrorOptions{
		Folder: folder, Job: m.mirrorJob, Queue: m.queueName, Office: o, Known: m.mirrorKnown,
	})
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // items that die while the run stops get a file too
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(mirrorEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = to.Add(ctx) // end tries again, and returns its error
			}
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		return to.Close(ctx)
	}, nil
}

// itemFolder returns the folder of items that --store or the environment names.
func (g *globals) itemFolder() (folder string, is bool) {
	url, err := config.StoreURL(g.store, g.Env)
	if err != nil {
		return "", false
	}
	return app.ItemFolder(url)
}

// takeFolder takes the items of a queue of a folder into the store and the queue of the job, except
// for those that the store has.
func (r *mapRetry) takeFolder(ctx context.Context, folder, from, into, queue string) error {
	file, err := letterfile.Open(letterfile.Options{Path: folder})
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	m := &importing{globals: r.at(into), reason: "retried from " + folder}
	r.items = map[string]bool{}
	return m.visitStore(app.Options{Clock: m.Now}, func(o *office.Office) error {
		m.take = func(ctx context.Context, letters []nixie.Letter) ([]nixie.Receipt, []error) {
			return o.Adopt(ctx, letters, m.reason)
		}
		return m.drain(ctx, func() (rec letterfile.Record, err error) {
			for {
				rec, err = file.Next()
				l := &rec.Letter
				if err != nil || rec.Err != nil {
					return rec, err
				}
				if l.Message.Queue != from {
					continue
				}
				l.Message.Queue, r.items[itemfile.ItemID(l)] = queue, true
				if known, err := knows(ctx, o, queue, l.Message.Key); err != nil || !known {
					return rec, err
				}
			}
		})
	})
}

// knows reports whether a store has an item of a queue.
func knows(ctx context.Context, o *office.Office, queue, item string) (bool, error) {
	found, _, err := o.Messages(ctx, nixie.Filter{Queues: []string{queue}, Keys: []string{item}}, store.Page{Limit: 1})
	return len(found) > 0, err
}

// removeFiles purges or discards items of a folder: their files go, and the audit there has actor
// and reason.
func (l *letterBulk) removeFiles(ctx context.Context, folder string, args []string) error {
	return l.visit(func(o *office.Office) error {
		l.choice.filter.Statuses = nil // all letters of a folder are open
		f, err := l.choice.resolve(ctx, o, l.choice.filter)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			ids, err := l.choice.of.ids(ctx, o, args)
			if err == nil {
				f.IDs, err = o.LetterIDs(ctx, ids)
			}
			if err != nil {
				return err
			}
		}
		var items []string
		for letter, err := range o.AllLetters(ctx, f, false) {
			if err != nil {
				return err
			}
			items = append(items, itemfile.ItemID(&letter))
		}
		job := mapreduce.JobOf(f.Queues[0])
		return l.do(func() (plan, error) {
			n := int64(len(items))
			return l.plan(&office.Plan{Selected: n, Movable: n}), nil
		}, func() error { return l.removeItems(folder, job, items) })
	})
}

func (l *letterBulk) removeItems(folder, job string, items []string) error {
	from, err := itemfile.NewWriter(folder, l.Now)
	if err != nil {
		return err
	}
	removed := 0
	for _, item := range items {
		there, err := from.Remove(job, item, itemfile.Removal{Action: moved[l.event], Actor: config.Actor(l.Env), Reason: l.reason})
		if err != nil {
			return errors.Join(err, from.Close())
		}
		if there {
			removed++
		}
	}
	if err := from.Close(); err != nil {
		return err
	}
	return l.object(filesRemoved{removed}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s; audit.jsonl says who did it\n", plural(int64(removed), "item"), l.done)
	})
}

// filesRemoved is the JSON of a purge of a folder.
type filesRemoved struct {
	Removed int `json:"removed"`
}
