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

// disk is a folder in which each measurement gets one of its own.
type disk struct {
	folder string
	peers  *synchronous
}

func (p *synchronous) ground(_ context.Context, folder string) (match.Ground, error) {
	work, err := os.MkdirTemp(folder, "nixie-bench-")
	return &disk{work, p}, err
}

// Facts implements match.Ground.
func (d *disk) Facts() []string {
	return []string{"Peers: SQLite by " + sqldriver.Driver + ", WAL. Nixie and the limit: WAL, synchronous FULL."}
}

// Place implements match.Ground.
func (d *disk) Place(_ context.Context, s contest.Scenario) (match.Place, error) {
	folder, err := os.MkdirTemp(d.folder, "run-")
	return &place{contest.Setup{Scenario: s, Folder: folder, Synchronous: d.peers.at(s)}}, err
}

// Close implements match.Ground.
func (d *disk) Close() error { return os.RemoveAll(d.folder) }

// place is the folder of one measurement.
type place struct{ setup contest.Setup }

// Setup implements match.Place.
func (p *place) Setup() contest.Setup { return p.setup }

// Begin implements match.Place.
func (p *place) Begin(context.Context) error { return nil }

// End implements match.Place.
func (p *place) End(_ context.Context, r *contest.Result) (err error) {
	r.File, err = folderSize(p.setup.Folder)
	return err
}

// Remove implements match.Place.
func (p *place) Remove(context.Context) error { return os.RemoveAll(p.setup.Folder) }

// folderSize is the size of all files below a folder.
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
