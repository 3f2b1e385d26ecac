package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// installed are files that dpkg -L lists.
const installed = `/usr/bin/nixie /usr/lib/systemd/system/nixie-serve.service
	/usr/share/bash-completion/completions/nixie /usr/share/zsh/vendor-completions/_nixie
	/usr/share/fish/vendor_completions.d/nixie.fish /usr/share/doc/nixie/copyright
	/usr/share/man/man1/nixie.1.gz /usr/share/man/man1/nixie-map-dlq-list.1.gz
	/usr/share/doc/nixie/changelog.gz /usr/share/doc/nixie/examples/kubernetes/nixie.yaml`

// checkPackage installs the package in a fresh root of Debian, runs a job, and removes it.
func checkPackage(ctx context.Context, r *release) (string, error) {
	root, err := r.debianRoot(ctx)
	if err != nil {
		return "", err
	}
	if _, err := command(ctx, "cp", r.path("_"+runtime.GOARCH+".deb"), filepath.Join(root, "srv", "nixie.deb")); err != nil {
		return "", err
	}
	said, err := inside(ctx, root, `set -e; cd
		dpkg --install nixie.deb
		dpkg --verify nixie
		dpkg -L nixie
		bash -c '. /usr/share/bash-completion/completions/nixie && complete -p nixie'
		nixie version
		echo a | nixie run - --job first -- echo {line}`)
	if err != nil {
		return "", err
	}
	for _, want := range append(strings.Fields(installed), "nixie v"+r.version+" ", "1 succeeded") {
		if !strings.Contains(said, want) {
			return "", fmt.Errorf("it says:\n%s\nwithout %q", said, want)
		}
	}
	saw := "dpkg installed, verified, listed and removed it, and a job ran"
	if needs("lintian") == nil {
		for _, arch := range []string{"amd64", "arm64"} {
			if _, err := command(ctx, "lintian", "--allow-root", "--fail-on", "error", r.path("_"+arch+".deb")); err != nil {
				return "", err
			}
		}
		saw += "; lintian found no errors"
	}
	if needs("man") == nil {
		said, err := command(ctx, "sh", "-c", `for page in "$0"/usr/share/man/man1/nixie*; do
			man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null || echo "man cannot show $page"; done`, root)
		if err != nil || said != "" {
			return "", fmt.Errorf("pages of the manual: %w\n%s", err, said)
		}
		saw += "; man showed each page without a warning"
	}
	if needs("systemd-analyze") == nil {
		// The program of the unit has to be there, and the root has no systemd.
		unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/nixie-serve.service"))
		if err != nil {
			return "", err
		}
		moved := filepath.Join(r.work, "nixie-serve.service")
		text := strings.ReplaceAll(string(unit), "=/usr/bin/nixie", "="+filepath.Join(root, "usr/bin/nixie"))
		if err := os.WriteFile(moved, []byte(text), 0o600); err != nil {
			return "", err
		}
		if _, err := command(ctx, "systemd-analyze", "verify", moved); err != nil {
			return "", err
		}
		saw += "; systemd-analyze verified the unit"
	}
	if _, err := inside(ctx, root, "dpkg --remove nixie"); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "usr/bin/nixie")); err == nil {
		return "", fmt.Errorf("the program is still there after dpkg --remove")
	}
	return saw, nil
}
