package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// mirrors are the folders of items that follow a bulk command: those of the jobs on this machine
// that have their items in its store.
type mirrors struct {
	*letterBulk
	all []*letterfile.Mirror
}

// mirrors opens the folders before letters move. One that cannot be opened is told.
func (l *letterBulk) mirrors(ctx context.Context, o *office.Office) (m mirrors) {
	m.letterBulk = l
	if l.dry || l.event == store.OnNote {
		return m
	}
	jobs, err := worktree.Begun(l.worktrees())
	if err != nil {
		l.say("folders of items stay as they are: %v", err)
	}
	for _, job := range jobs {
		folder := l.mirrorOf(job)
		if folder == "" {
			continue
		}
		to, err := l.openMirror(letterfile.MirrorOptions{Folder: folder, Queue: job.Queue(), Office: o})
		if err == nil {
			err = to.Follow(ctx)
			m.all = append(m.all, to)
		}
		if err != nil {
			l.say("%s stays as it is: %v", folder, err)
		}
	}
	return m
}

// mirrorOf returns the folder that a job keeps up to date. It is empty if there is none, or if the
// job has its items in another store.
func (g *globals) mirrorOf(job worktree.Known) string {
	last, err := job.Invocation()
	if err != nil { // it was killed before it had begun
		return ""
	}
	mirror := ""
	for i, word := range last.Flags {
		if word == "--mirror" && i+1 < len(last.Flags) {
			mirror = last.Flags[i+1]
		}
	}
	folder, is := app.ItemFolder(mirror)
	here, err := storeName(g.store, "", g.Env)
	there, other := storeName(last.Store, last.Folder, g.Env)
	if !is || err != nil || other != nil || here != there {
		return ""
	}
	return within(last.Folder, folder)
}

// within returns the path of a file in a folder, unless it is absolute.
func within(folder, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(folder, file)
}

// storeName names a store on this machine without a password. A folder is that of relative paths;
// empty is the present one.
func storeName(flag, folder string, env config.Environment) (string, error) {
	url, err := config.StoreURL(flag, env)
	if file, is := strings.CutPrefix(url, "sqlite://"); is && err == nil {
		if file, err = filepath.Abs(within(folder, file)); err == nil {
			url = "sqlite://" + file
		}
	}
	return app.Shown(url), err
}

// openMirror completes the options of a folder and opens it.
func (g *globals) openMirror(o letterfile.MirrorOptions) (*letterfile.Mirror, error) {
	var masking masking
	if err := masking.read(g); err != nil {
		return nil, err
	}
	o.Actor, o.Mask, o.Clock = config.Actor(g.Env), masking.letter, g.Now
	return letterfile.OpenMirror(o)
}

// moved are the words for what removes a letter from the dead.
var moved = map[store.Event]string{store.OnPurge: "purged", store.OnDiscard: "discarded", store.OnRedrive: "redriven"}

// follow brings the folders up to date after letters have moved.
func (m mirrors) follow(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // a part of the letters has moved
	for _, to := range m.all {
		err := to.Moved(ctx, itemfile.Removal{Action: moved[m.event], Reason: m.reason})
		if closing := to.Close(ctx); err == nil {
			err = closing
		}
		if err != nil {
			m.say("%v; the next run of the job brings the folder up to date", err)
		}
	}
}
