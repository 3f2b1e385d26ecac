package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5" //nolint:gosec // a package lists its files by MD5; SHA256SUMS protects
	"fmt"
	"path"
	"strings"
	"time"
)

// A package for Debian is an archive of ar with two archives of tar. It needs nothing that the
// standard library does not have, and no scripts: systemd makes the folder of the store.

// copyright is the licence of the package. Debian has the text of it on each machine.
const copyright = `Nixie
Copyright 2026 The Nixie authors

Nixie is under the Apache License, Version 2.0. On systems of Debian its text is
/usr/share/common-licenses/Apache-2.0.

The program contains parts of modules of others. NOTICE.gz in this folder has
their licences and notices.
`

// maintainer has an address because a package must. It takes no mail: the homepage does.
const maintainer = "The Nixie authors <nixie-go@users.noreply.github.com>"

// changes lists a version with its maintainer and time, as Debian's tools read it.
const changes = `nixie (%s) unstable; urgency=medium

  * NEWS.gz has what is new.

 -- %s  %s
`

// control is the description of a package: version, architecture, size in KiB.
const control = `Package: nixie
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Suggests: ca-certificates, git, tzdata
Section: utils
Priority: optional
Homepage: https://github.com/nixie-go/nixie
Description: retries and a dead letter office for work that can fail
 Nixie runs a command for each item of a list or message of a queue, retries
 what fails, and keeps what cannot succeed as a letter with its whole history.
 Letters are grouped by cause, looked at, repaired and redriven.
`

// packages makes the packages for Debian, one for each architecture of Linux.
func (s *source) packages(_ context.Context, programs []program) ([]file, error) {
	var files []file
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		body, err := s.debian(p)
		if err != nil {
			return nil, err
		}
		files = append(files, file{s.name("_" + p.arch + ".deb"), body})
	}
	return files, nil
}

func (s *source) debian(p program) ([]byte, error) {
	installed, err := s.installed(p)
	if err != nil {
		return nil, err
	}
	var sums strings.Builder
	size := 0
	for _, e := range installed {
		size += len(e.body)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.body), e.name) //nolint:gosec // see the import
	}
	data, err := tarGz(rooted(installed), s.when)
	if err != nil {
		return nil, err
	}
	about, err := tarGz(rooted([]entry{
		{name: "control", mode: 0o644, body: fmt.Appendf(nil, control, s.debianVersion(), p.arch, maintainer, size>>10)},
		{name: "md5sums", mode: 0o644, body: []byte(sums.String())},
	}), s.when)
	if err != nil {
		return nil, err
	}
	return ar(s.when, file{"debian-binary", []byte("2.0\n")}, file{"control.tar.gz", about}, file{"data.tar.gz", data}), nil
}

// debianVersion has a tilde where a version has a hyphen, which means something else there.
func (s *source) debianVersion() string { return strings.ReplaceAll(s.version, "-", "~") }

// installed lists the files of the package.
func (s *source) installed(p program) ([]entry, error) {
	texts, err := s.entries("NOTICE", "CHANGELOG.md", "deploy/systemd/nixie-serve.service")
	if err != nil {
		return nil, err
	}
	const doc = "usr/share/doc/nixie/"
	all := []entry{
		{name: "usr/bin/nixie", mode: 0o755, body: p.body},
		{name: "usr/lib/systemd/system/nixie-serve.service", mode: 0o644, body: texts[2].body},
		{name: "usr/share/lintian/overrides/nixie", mode: 0o644, body: []byte("nixie: statically-linked-binary [usr/bin/nixie]\n")},
		{name: doc + "copyright", mode: 0o644, body: []byte(copyright)},
	}
	for _, f := range []file{
		{"NOTICE", texts[0].body}, {"NEWS", texts[1].body},
		{"changelog", fmt.Appendf(nil, changes, s.debianVersion(), maintainer, s.when.Format(time.RFC1123Z))},
	} {
		packed, err := gzipped(f.body, gzip.BestCompression) // as Debian wants texts
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: doc + f.name + ".gz", mode: 0o644, body: packed})
	}
	for _, e := range s.shell {
		if e, err = asInstalled(e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	examples, err := s.folder("deploy")
	if err != nil {
		return nil, err
	}
	for _, e := range examples {
		if !strings.HasSuffix(e.name, "/") {
			e.name = doc + strings.Replace(e.name, "deploy/", "examples/", 1)
			all = append(all, e)
		}
	}
	return all, nil
}

// rooted names entries from the root, and puts the folders that they need before them.
func rooted(entries []entry) []entry {
	all := []entry{{name: "./", mode: 0o755}}
	made := map[string]bool{".": true}
	var enter func(folder string)
	enter = func(folder string) {
		if !made[folder] {
			made[folder] = true
			enter(path.Dir(folder))
			all = append(all, entry{name: "./" + folder + "/", mode: 0o755})
		}
	}
	for _, e := range entries {
		enter(path.Dir(e.name))
		e.name = "./" + e.name
		all = append(all, e)
	}
	return all
}

// ar packs files as the tool ar does.
func ar(when time.Time, files ...file) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, when.Unix(), 0, 0, 0o100644, len(f.body))
		out.Write(f.body)
		if len(f.body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
