package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// completions are the scripts by which shells complete what is typed after nixie: the shell, the
// name in the archive, and where packages of Debian put it.
var completions = []struct{ shell, name, installed string }{
	{"bash", "nixie.bash", "usr/share/bash-completion/completions/nixie"},
	{"zsh", "_nixie", "usr/share/zsh/vendor-completions/_nixie"},
	{"fish", "nixie.fish", "usr/share/fish/vendor_completions.d/nixie.fish"},
}

// forShells lists what shells and man read, by its name in the archive: the scripts, which the
// program of this machine prints for all systems, and the pages of the manual.
func (s *source) forShells(ctx context.Context, programs []program) error {
	i := slices.IndexFunc(programs, func(p program) bool { return p.os == runtime.GOOS && p.arch == runtime.GOARCH })
	if i < 0 {
		return fmt.Errorf("no program for %s/%s: a release is built where one of its programs runs", runtime.GOOS, runtime.GOARCH)
	}
	for _, c := range completions {
		// A script is for the name that asks for it. No settings of this machine are in it.
		script, err := run(ctx, s.dir, nil, "env", "-i", "PATH="+path.Dir(programs[i].path), "nixie", "completion", c.shell)
		if err != nil {
			return err
		}
		s.shell = append(s.shell, entry{name: "completions/" + c.name, mode: 0o644, body: []byte(script + "\n")})
	}
	pages, err := s.manual()
	s.shell = append(s.shell, pages...)
	return err
}

// asInstalled says where a package of Debian has a file for shells.
func asInstalled(e entry) (entry, error) {
	if strings.HasPrefix(e.name, "man/") {
		body, err := gzipped(e.body, gzip.BestCompression)
		return entry{name: "usr/share/" + e.name + ".gz", mode: e.mode, body: body}, err
	}
	for _, c := range completions {
		if e.name == "completions/"+c.name {
			e.name = c.installed
			return e, nil
		}
	}
	return e, fmt.Errorf("%s: a package has no folder for it", e.name)
}
