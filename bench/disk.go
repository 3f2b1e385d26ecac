package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/sqldriver"
)

// disk makes a folder for each measurement.
type disk struct {
	folder string
	peers  *synchronous
}

func (p *synchronous) host(_ context.Context, folder string) (match.Host, error) {
	work, err := os.MkdirTemp(folder, "nixie-bench-")
	return &disk{work, p}, err
}

// Facts implements match.Host.
func (d *disk) Facts() []string {
	return []string{"Peers: SQLite by " + sqldriver.Driver + ", WAL. Nixie and the limit: WAL, synchronous FULL."}
}

// Workspace implements match.Host.
func (d *disk) Workspace(_ context.Context, s contest.Scenario) (match.Workspace, error) {
	folder, err := os.MkdirTemp(d.folder, "run-")
	return &workspace{contest.Setup{Scenario: s, Folder: folder, Synchronous: d.peers.at(s)}}, err
}

// Close implements match.Host.
func (d *disk) Close() error { return os.RemoveAll(d.folder) }

// workspace is the folder of one measurement.
type workspace struct{ setup contest.Setup }

// Setup implements match.Workspace.
func (p *workspace) Setup() contest.Setup { return p.setup }

// Begin implements match.Workspace.
func (p *workspace) Begin(context.Context) error { return nil }

// End implements match.Workspace.
func (p *workspace) End(_ context.Context, r *contest.Result) (err error) {
	r.File, err = folderSize(p.setup.Folder)
	return err
}

// Remove implements match.Workspace.
func (p *workspace) Remove(context.Context) error { return os.RemoveAll(p.setup.Folder) }

// folderSize returns the size of all files below a folder.
func folderSize(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return nil
	})
	return size, err
}
