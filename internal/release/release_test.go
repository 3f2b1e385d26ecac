package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// commitTime is the time of the commits of these tests, in a zone that is not that of the machine.
func commitTime() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 9*3600)) }

// listed lists an archive of tar: mode, owner, time and name of each entry.
func listed(t *testing.T, packed []byte) string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(unpacked, make([]byte, 1024)) {
		t.Error("the archive has no end: tar says that it is cut off")
	}
	if !plain.ModTime.IsZero() || plain.Name != "" {
		t.Errorf("the archive has the time %v and the name %q", plain.ModTime, plain.Name)
	}
	var lines []string
	for r := tar.NewReader(bytes.NewReader(unpacked)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%o %d:%d %s %s", h.Mode, h.Uid, h.Gid, h.ModTime.UTC().Format(time.DateTime), h.Name))
	}
}

func TestArchivesHaveTheTimeOfTheCommit(t *testing.T) {
	entries := []entry{
		{name: "a/", mode: 0o755}, {name: "a/nixie", mode: 0o755, body: []byte("x")}, {name: "a/data/", mode: 0o755, owner: 7},
	}
	packed, err := tarGz(entries, commitTime())
	if err != nil {
		t.Fatal(err)
	}
	const want = "755 0:0 2026-05-04 03:00:00 a/\n755 0:0 2026-05-04 03:00:00 a/nixie\n755 7:7 2026-05-04 03:00:00 a/data/"
	if got := listed(t, packed); got != want {
		t.Errorf("the archive has\n%s\nwant\n%s", got, want)
	}

	packed, err = zipped(entries, commitTime())
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range r.File {
		if f.Name != entries[i].name || !f.Modified.Equal(commitTime()) || int64(f.Mode().Perm()) != entries[i].mode {
			t.Errorf("the zip has %s %v %v", f.Name, f.Mode(), f.Modified)
		}
	}
}

func TestPackageForDebian(t *testing.T) {
	s := &source{dir: t.TempDir(), when: commitTime(), version: "0.0.0-20260504-ab"}
	for _, name := range []string{"NOTICE", "CHANGELOG.md", "deploy/systemd/nixie-serve.service"} {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.shell = []entry{
		{name: "completions/_nixie", mode: 0o644, body: []byte("z")}, {name: "completions/nixie.bash", mode: 0o644, body: []byte("b")},
		{name: "completions/nixie.fish", mode: 0o644, body: []byte("f")}, {name: "man/man1/nixie-run.1", mode: 0o644, body: []byte("m")},
	}
	body, err := s.debian(program{target: target{os: "linux", arch: "arm64"}, body: make([]byte, 5000)})
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(body, []byte("!<arch>\n"))
	members := map[string][]byte{}
	for ok && len(rest) > 60 {
		var size int
		if _, err := fmt.Sscanf(string(rest[48:58]), "%d", &size); err != nil {
			t.Fatal(err)
		}
		members[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	if string(members["debian-binary"]) != "2.0\n" || len(rest) > 0 {
		t.Fatalf("it has %d members, and %d bytes are left", len(members), len(rest))
	}
	const want = "755 0:0 2026-05-04 03:00:00 ./\n755 0:0 2026-05-04 03:00:00 ./usr/\n755 0:0 2026-05-04 03:00:00 ./usr/bin/\n" +
		"755 0:0 2026-05-04 03:00:00 ./usr/bin/nixie\n"
	got := listed(t, members["data.tar.gz"])
	if !strings.HasPrefix(got, want) {
		t.Errorf("it installs\n%s", got)
	}
	for _, name := range []string{
		"lib/systemd/system/nixie-serve.service", "share/bash-completion/completions/nixie", "share/zsh/vendor-completions/_nixie",
		"share/fish/vendor_completions.d/nixie.fish", "share/man/man1/nixie-run.1.gz", "share/doc/nixie/changelog.gz",
		"share/doc/nixie/NEWS.gz", "share/doc/nixie/NOTICE.gz", "share/doc/nixie/copyright",
	} {
		if !strings.Contains(got+"\n", "\n644 0:0 2026-05-04 03:00:00 ./usr/"+name+"\n") {
			t.Errorf("it lacks usr/%s:\n%s", name, got)
		}
	}
	plain, err := gzip.NewReader(bytes.NewReader(members["control.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	about, err := io.ReadAll(plain)
	if err != nil || !bytes.Contains(about, []byte("Version: 0.0.0~20260504~ab\nArchitecture: arm64\nMaintainer: The Nixie authors <")) {
		t.Errorf("%v, its control is %q", err, about)
	}
}

// TestManualPage writes a page that has all that pages of docs/cli have.
func TestManualPage(t *testing.T) {
	const body = "\n<!-- written -->\n\nRun it, don't ask.\n\n```text\nnixie run ITEMS [flags]\n```\n\n```text\nRuns ~ once,\n" +
		"or \\twice….\n  a    one\n.b is two.\n\nEnds.\n```\n\nFor example:\n\n```text\nnixie run a -- b\n\nnixie run c\n```\n\n" +
		"| flag | default | meaning |\n|---|---|---|\n| `-o, --as a\\|b` | a | form, x &lt; `y` |\n| `--no` |  | none |\n\n" +
		"| command | what it does |\n|---|---|\n| [`nixie run fast`](run-fast.md) | Fast |\n\n" +
		"| code | means |\n|---|---|\n| 0 | done |\n\n" +
		"Output, exit codes and the rest: [the command line](../cli.md).\n"
	const want = `.SH NAME
nixie\-run \- Run it, don\(aqt ask
.SH SYNOPSIS
\fBnixie run\fR ITEMS [flags]
.SH DESCRIPTION
Runs \(ti once,
or \etwice\[u2026].
.nf
  a    one
.fi
\&.b is two.
.PP
Ends.
.SH EXAMPLES
.nf
nixie run a \-\- b
.PP
nixie run c
.fi
.SH OPTIONS
.TP
\fB\-o, \-\-as a|b\fR
form, x < \fBy\fR (default a)
.TP
\fB\-\-no\fR
none
.SH COMMANDS
.TP
\fBnixie\-run\-fast(1)\fR
Fast
.PP
code means:
.TP
0
done
.SH SEE ALSO
Output, exit codes and the rest: \fBnixie(1)\fR.
`
	if got := manualPage("nixie run", body); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
}

// TestManual writes the pages of this repository. What man would not understand is in none.
func TestManual(t *testing.T) {
	s := &source{dir: filepath.Join("..", ".."), when: commitTime(), version: "0.1.0"}
	pages, err := s.manual()
	if err != nil || len(pages) < 100 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	known := regexp.MustCompile(`^(\.(TH NIXIE.*|SH [A-Z ]+|PP|TP|nf|fi|nh|ad l)|[^.'` + "`" + `][^` + "`" + `]*)$`)
	for _, page := range pages {
		body := string(page.body)
		if !strings.HasPrefix(body, ".TH NIXIE") || !strings.Contains(body, "\n.SH NAME\nnixie") || strings.Contains(body, "](") {
			t.Errorf("%s is\n%.300s", page.name, body)
		}
		for line := range strings.Lines(body) {
			if !known.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s has the line %q", page.name, line)
			}
		}
	}
	if pages[0].name != "man/man1/nixie.1" || !strings.Contains(string(pages[0].body), ".TH NIXIE 1 2026-05-04 \"nixie 0.1.0\"") {
		t.Errorf("the first page is %s:\n%.300s", pages[0].name, pages[0].body)
	}
}

func TestImageNamesItsBlobs(t *testing.T) {
	s := &source{when: commitTime(), version: "0.1.0", commit: "c0ffee"}
	all := blobs{}
	l, err := all.putLayer([]entry{{name: "data/", mode: 0o755, owner: unprivileged}}, s.when)
	if err != nil {
		t.Fatal(err)
	}
	d, err := all.putImage(s.imageConfig(program{target: target{os: "linux", arch: "arm64"}}, "1"), l)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range all {
		if want := fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(body)); name != want {
			t.Errorf("a blob is named %s, want %s", name, want)
		}
	}
	var m manifest
	if err := json.Unmarshal(all["blobs/"+strings.Replace(d.Digest, ":", "/", 1)], &m); err != nil {
		t.Fatal(err)
	}
	var c imageConfig
	if err := json.Unmarshal(all["blobs/"+strings.Replace(m.Config.Digest, ":", "/", 1)], &c); err != nil {
		t.Fatal(err)
	}
	plain, err := tarred([]entry{{name: "data/", mode: 0o755, owner: unprivileged}}, s.when)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(plain)); len(c.RootFS.Diffs) != 1 || c.RootFS.Diffs[0] != want {
		t.Errorf("the layers are %v, want %s", c.RootFS.Diffs, want)
	}
	if c.Config.User != "65532:65532" || c.Architecture != "arm64" || d.Platform.Architecture != "arm64" {
		t.Errorf("the image starts as %q on %v", c.Config.User, d.Platform)
	}
}

func TestListOfModulesKeepsWhatItDoesNotRead(t *testing.T) {
	const text = `{"bom-ref":"m@1","licenses":[{"license":{"id":"MIT"}}]}`
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(p); err != nil || string(got) != text || p.ref != "m@1" {
		t.Errorf("%v, %s became %s", err, text, got)
	}
}

func TestSumsAreSortedByName(t *testing.T) {
	got := string(sums([]file{{"b", []byte("x")}, {"a", []byte("y")}}).body)
	want := fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("y")), sha256.Sum256([]byte("x")))
	if got != want {
		t.Errorf("the sums are %q, want %q", got, want)
	}
}
