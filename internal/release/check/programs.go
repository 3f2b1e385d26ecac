package main

import (
	"archive/zip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The most that a program and an archive may have, in bytes.
const (
	maxProgram = 53 << 20
	maxArchive = 20 << 20
)

// archive is a released archive: the folder into which it was unpacked, and what it lists.
type archive struct {
	name, folder, program, listed string
}

// archives unpacks the archives of all systems.
func (r *release) archives(ctx context.Context) ([]*archive, error) {
	var all []*archive
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
		a := &archive{name: "nixie_" + r.version + "_" + system + ".tar.gz", program: "nixie"}
		a.folder = filepath.Join(r.work, strings.TrimSuffix(a.name, ".tar.gz"))
		var err error
		if system == "windows_amd64" {
			a.name, a.program = filepath.Base(a.folder)+".zip", "nixie.exe"
			a.listed, err = unzip(filepath.Join(r.dist, a.name), r.work)
		} else if _, err = command(ctx, "tar", "-xzf", filepath.Join(r.dist, a.name), "-C", r.work); err == nil {
			a.listed, err = command(ctx, "tar", "--numeric-owner", "-tvzf", filepath.Join(r.dist, a.name))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// unzip unpacks a zip, and lists it as tar does.
func unzip(name, to string) (string, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return "", err
	}
	defer z.Close() //nolint:errcheck // it was only read
	var lines strings.Builder
	for _, f := range z.File {
		fmt.Fprintf(&lines, "%v 0/0 %s\n", f.Mode(), f.Name)
	}
	return lines.String(), os.CopyFS(to, z)
}

// mode matches the line of what an archive lists when it has the mode and the owner that it should.
var mode = regexp.MustCompile(`^(drwxr-xr-x 0/0 .*/|-rwxr-xr-x 0/0 .*/nixie(\.exe)?|-rw-r--r-- 0/0 .*[^/])$`)

// refused begins the README for Windows, after its title.
const refused = "**Commands cannot be run on Windows.**"

// look looks at what is in an archive: names, modes, owners. The README for Windows says first what
// cannot be done there.
func (a *archive) look() error {
	want := []string{a.program, "LICENSE", "NOTICE", "CHANGELOG.md", "deploy/kubernetes/nixie.yaml", "deploy/systemd/nixie-serve.service"}
	if a.program == "nixie" {
		want = append(want, "completions/nixie.bash", "completions/_nixie", "completions/nixie.fish",
			"man/man1/nixie.1", "man/man1/nixie-map-dlq-list.1")
	}
	var wrong []error
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(a.folder, name)); err != nil || info.Size() == 0 {
			wrong = append(wrong, fmt.Errorf("%s lacks %s: %w", a.name, name, err))
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(a.listed), "\n") {
		if !mode.MatchString(line) || !strings.Contains(line, filepath.Base(a.folder)+"/") {
			wrong = append(wrong, fmt.Errorf("%s has %s", a.name, line))
		}
	}
	readme, err := os.ReadFile(filepath.Join(a.folder, "README.md"))
	if _, text, _ := strings.Cut(string(readme), "\n\n"); err != nil || strings.HasPrefix(text, refused) != (a.program == "nixie.exe") {
		wrong = append(wrong, fmt.Errorf("%s: %w, its README begins with %.80q", a.name, err, text))
	}
	return errors.Join(wrong...)
}

// checkPrograms looks at each archive, and compares the version, the sizes and the modules of its
// program with what the release says.
func checkPrograms(ctx context.Context, r *release) (string, error) {
	text, err := os.ReadFile(r.path("_sbom.cdx.json"))
	if err != nil {
		return "", err
	}
	var list struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", err
	}
	named := map[string]bool{}
	for _, c := range list.Components {
		named[c.Name+"@"+c.Version] = true
	}
	archives, err := r.archives(ctx)
	if err != nil {
		return "", err
	}
	var wrong []error
	var most [2]int64 // bytes of a program, of an archive
	modules := map[string]bool{}
	for _, a := range archives {
		wrong = append(wrong, a.look())
		program := filepath.Join(a.folder, a.program)
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return "", fmt.Errorf("%s: %w", a.name, err)
		}
		if info.Main.Version != "v"+r.version {
			wrong = append(wrong, fmt.Errorf("%s: the program says that it is %s", a.name, info.Main.Version))
		}
		notice, err := os.ReadFile(filepath.Join(a.folder, "NOTICE"))
		if err != nil {
			return "", err
		}
		for _, m := range info.Deps {
			modules[m.Path] = true
			if !named[m.Path+"@"+m.Version] || !strings.Contains(string(notice), "\n"+m.Path+", ") {
				wrong = append(wrong, fmt.Errorf("%s: the list of modules or NOTICE lacks %s %s", a.name, m.Path, m.Version))
			}
		}
		for i, name := range []string{program, filepath.Join(r.dist, a.name)} {
			info, err := os.Stat(name)
			if err != nil {
				return "", err
			}
			most[i] = max(most[i], info.Size())
		}
	}
	if most[0] > maxProgram || most[1] > maxArchive {
		wrong = append(wrong, fmt.Errorf("a program has %d bytes, an archive %d", most[0], most[1]))
	}
	return fmt.Sprintf("%d programs of version v%s, at most %.1f MiB, archives at most %.1f MiB; SBOM and NOTICE name their %d modules",
		len(archives), r.version, float64(most[0])/(1<<20), float64(most[1])/(1<<20), len(modules)), errors.Join(wrong...)
}
