package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/docs"
)

// checkClone clones the repository on a root of Debian with Go and runs the first command of the
// README. Then it types the commands that this printed, by hand, as a reader does.
func checkClone(ctx context.Context, r *release) (string, error) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	const first = "$ make first\n"
	blocks, err := docs.Blocks(string(readme))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(blocks, func(b docs.Block) bool { return strings.HasPrefix(b.Text, first) })
	if i < 0 {
		return "", fmt.Errorf("no block of the README begins with %q", first)
	}
	said, err := r.withGo(ctx, "make first")
	if err != nil {
		return "", err
	}
	shown := strings.TrimPrefix(blocks[i].Text, first)
	if !docs.Matches(shown, said) {
		return "", fmt.Errorf("make first\nshown:\n%s\nprinted:\n%s", shown, said)
	}
	script, commands, err := typed("```console\n"+strings.TrimPrefix(shown, "...\n")+"\n```\n", "")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(r.debian, "srv", "typed.sh"), []byte(script), 0o600); err != nil {
		return "", err
	}
	output, err := inside(ctx, r.debian, `cd /srv/nixie && rm -r bin/first && exec sh ../typed.sh`)
	if err := errors.Join(err, compare(commands, output)); err != nil {
		return "", err
	}
	return fmt.Sprintf("make first, and its %d commands by hand, as printed", len(commands)), nil
}

// checkTests runs the README's second command.
func checkTests(ctx context.Context, r *release) (string, error) {
	said, err := r.withGo(ctx, "make test")
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return "make test: " + lines[len(lines)-1], err
}

// withGo runs a command in a clone on a root of Debian, with the Go and the modules of this
// machine, which the root can only read.
func (r *release) withGo(ctx context.Context, line string) (string, error) {
	root, err := r.debianRoot(ctx)
	if err != nil {
		return "", err
	}
	folders, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return "", err
	}
	goroot, modules, _ := strings.Cut(strings.TrimSpace(string(folders)), "\n")
	if _, err := os.Stat(filepath.Join(root, "srv", "nixie")); err != nil {
		if _, err := command(ctx, "git", "clone", "--quiet", ".", filepath.Join(root, "srv", "nixie")); err != nil {
			return "", err
		}
		if _, err := inside(ctx, root, "apt-get install -q -y --no-install-recommends make git ca-certificates"); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", `
		mkdir -p "$0/usr/local/go" "$0/modules"
		mount --bind "$0" "$0" # a root is a mount, which tests with namespaces of their own need
		mount -t proc proc "$0/proc"
		mount --rbind /dev "$0/dev"
		mount --bind "$1" "$0/usr/local/go" && mount -o remount,bind,ro "$0/usr/local/go"
		mount --bind "$2" "$0/modules" && mount -o remount,bind,ro "$0/modules"
		exec chroot "$0" /bin/sh -c "cd /srv/nixie && $3"`, root, goroot, modules, line)
	cmd.Env = []string{
		"PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/srv", "GOMODCACHE=/modules", "GOPROXY=off",
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return string(said), fmt.Errorf("$ %s: %w\n%s", line, err, said)
	}
	return string(said), nil
}
