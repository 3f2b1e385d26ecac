package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// maxFirst bounds the way from an archive to the first letter that was redriven.
const maxFirst = time.Minute

// checkArchive types the README of the archive on a root that has a shell and no Go.
func checkArchive(ctx context.Context, r *release) (string, error) {
	root := filepath.Join(r.work, "busybox")
	if err := busybox(ctx, root); err != nil {
		return "", err
	}
	took, n, err := r.story(ctx, root, "linux_"+runtime.GOARCH)
	if err != nil {
		return "", err
	}
	if took > maxFirst {
		return "", fmt.Errorf("from the archive to the first redriven letter it took %v, want at most %v", took, maxFirst)
	}
	return fmt.Sprintf("%d commands as printed; from the archive to the end of its story, after the first redriven letter, in %v",
		n, took.Round(10*time.Millisecond)), nil
}

// story copies the archive of a system into a root and types what its README shows.
func (r *release) story(ctx context.Context, root, system string) (time.Duration, int, error) {
	name := r.path("_" + system + ".tar.gz")
	folder := strings.TrimSuffix(filepath.Base(name), ".tar.gz")
	if _, err := command(ctx, "cp", name, filepath.Join(root, "srv")); err != nil {
		return 0, 0, err
	}
	readme, err := command(ctx, "tar", "-xzOf", name, folder+"/README.md")
	if err != nil {
		return 0, 0, err
	}
	script, commands, err := typed(readme, "release-check")
	if err != nil {
		return 0, 0, err
	}
	if err := os.WriteFile(filepath.Join(root, "srv", "typed.sh"), []byte(script), 0o600); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	output, err := inside(ctx, root, "cd && exec sh typed.sh")
	took := time.Since(began)
	return took, len(commands), errors.Join(err, compare(commands, output))
}

// checkHomes runs a job where a home is missing or cannot be written, with and without the rights
// of root. It works, or says what to do. No terminal is there.
func checkHomes(ctx context.Context, r *release) (string, error) {
	root := filepath.Join(r.work, "homes")
	if err := busybox(ctx, root); err != nil {
		return "", err
	}
	if _, err := command(ctx, "tar", "-xzf", r.path("_linux_"+runtime.GOARCH+".tar.gz"), "--strip-components=1", "-C",
		filepath.Join(root, "bin")); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(root, "list.txt"), []byte("a\n"), 0o644); err != nil {
		return "", err
	}
	const advice = "set NIXIE_STORE, or give --store sqlite:///path/to/file"
	for _, home := range []struct{ name, user, set, want string }{
		{"root", "0:0", "export HOME=/srv", "1 succeeded"},
		{"root without HOME", "0:0", "unset HOME", advice},
		{"a user without HOME", "65532:65532", "unset HOME", advice},
		{"a home that cannot be written", "65532:65532", "export HOME=/srv", advice},
		{"a home that is not there", "65532:65532", "export HOME=/absent", advice},
		{"a file system that cannot be written", "0:0", "export HOME=/absent", advice},
		{"a user who names a store", "65532:65532", "unset HOME; export NIXIE_STORE=sqlite:///tmp/a/nixie.db", "1 succeeded"},
	} {
		script := home.set + "; exec nixie run /list.txt -- echo {line}"
		ready := ""
		if strings.HasPrefix(home.name, "a file system") {
			ready = `mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" && `
		}
		cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c",
			ready+`mount -t proc proc "$root/proc" && exec chroot --userspec="$0" "$root" /bin/sh -c "$1"`, home.user, script)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "root=" + root}
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), home.want) {
			return "", fmt.Errorf("%s: %w, want %q:\n%s", home.name, err, home.want, out)
		}
	}
	return "a job works, or is told where to put its store", nil
}

// checkARM64 starts the program for arm64 by qemu.
func checkARM64(ctx context.Context, r *release) (string, error) {
	if _, err := exec.LookPath("qemu-aarch64-static"); err != nil {
		return "", skip("qemu-aarch64-static is missing: install qemu-user-static")
	}
	dir := filepath.Join(r.work, "arm64")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if _, err := command(ctx, "tar", "-xzf", r.path("_linux_arm64.tar.gz"), "--strip-components=1", "-C", dir); err != nil {
		return "", err
	}
	said, err := command(ctx, "qemu-aarch64-static", filepath.Join(dir, "nixie"), "version")
	if err != nil {
		return "", err
	}
	if !strings.Contains(said, "nixie v"+r.version+" ") || !strings.Contains(said, "linux/arm64") {
		return "", fmt.Errorf("it says %q", said)
	}
	store := "sqlite://" + filepath.Join(dir, "nixie.db")
	said, err = command(ctx, "sh", "-ec", `
		echo '{"id": 1}' | "$@" enqueue orders
		"$@" stats backlog`, "sh", "qemu-aarch64-static", filepath.Join(dir, "nixie"), "--store", store)
	if err != nil || !strings.Contains(said, "orders") {
		return "", fmt.Errorf("a store: %w\n%s", err, said)
	}
	return "qemu ran version, enqueue and stats", nil
}
