package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// target is a system that the program is built for.
type target struct {
	os, arch string
	started  string // how make release-check starts it; empty: it was built, and never started
}

var targets = []target{
	{"linux", "amd64", "on this machine"},
	{"linux", "arm64", "by qemu-user"},
	{"darwin", "amd64", ""},
	{"darwin", "arm64", ""},
	{"windows", "amd64", ""},
}

// program is the program for a system.
type program struct {
	target
	path string // of the file, while the release is built
	body []byte
}

// environment lists what decides the bytes of a build. What a user has set otherwise, such as
// GOFLAGS=-buildvcs=false, is overruled.
func (t target) environment() []string {
	return []string{
		"GOOS=" + t.os, "GOARCH=" + t.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFIPS140=off",
		"GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOWORK=off",
	}
}

// programs builds the program for all systems, and finds out the version.
func (s *source) programs(ctx context.Context, work string, out io.Writer) ([]program, error) {
	var all []program
	for _, t := range targets {
		started := "it is built and was never started"
		if t.started != "" {
			started = "make release-check starts it " + t.started
		}
		fmt.Fprintf(out, "%s/%s: %s\n", t.os, t.arch, started)
		path := filepath.Join(work, t.os+"-"+t.arch, "nixie")
		if _, err := run(ctx, s.dir, t.environment(), "go", "build", "-buildvcs=true", "-trimpath", "-ldflags", "-s -w", "-o", path,
			"./cmd/nixie"); err != nil {
			return nil, err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, program{t, path, body})
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s.version = strings.TrimPrefix(info.Main.Version, "v")
		// An empty variable does not overrule what go env -w has set.
		for _, set := range info.Settings {
			if set.Key == "GOEXPERIMENT" {
				return nil, fmt.Errorf("GOEXPERIMENT is %q, and makes other programs: go env -u GOEXPERIMENT", set.Value)
			}
		}
		fmt.Fprintf(out, "\tversion %s, by %s\n", s.version, info.GoVersion)
	}
	// Without git the go command writes "(devel)", and the files could not be named.
	if s.version == "" || strings.ContainsAny(s.version, "(+") {
		return nil, fmt.Errorf("the program says that its version is %q: build from a clean clone, with git installed", s.version)
	}
	return all, nil
}
