package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command runs a command to its end and returns all that it printed.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// checkSums has sha256sum compare the files with their list, which names them all.
func checkSums(ctx context.Context, r *release) (string, error) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		return "", skip("sha256sum is missing")
	}
	said, err := command(ctx, "sh", "-c", `cd "$1" && sha256sum -c SHA256SUMS`, "sh", r.dist)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return "", err
	}
	if n := strings.Count(said, ": OK\n"); n != len(entries)-1 {
		return "", fmt.Errorf("SHA256SUMS names %d files of %d", n, len(entries)-1)
	}
	return fmt.Sprintf("%d files have the sums of SHA256SUMS", len(entries)-1), nil
}

// checkTwice builds again: another folder, a later time, and a setting that hides the version.
func checkTwice(ctx context.Context, r *release) (string, error) {
	clone, dist := filepath.Join(r.work, "another", "clone"), filepath.Join(r.work, "again")
	if _, err := command(ctx, "git", "clone", "--quiet", ".", clone); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "run", "./internal/release", "-dist", dist)
	build.Dir, build.Env = clone, append(os.Environ(), "GOFLAGS=-buildvcs=false", "TZ=Asia/Tokyo")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	first, err := os.ReadFile(filepath.Join(r.dist, "SHA256SUMS"))
	if err != nil {
		return "", err
	}
	second, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		return "", err
	}
	if !bytes.Equal(first, second) {
		return "", fmt.Errorf("the sums differ:\n%s\n%s", first, second)
	}
	return fmt.Sprintf("the same SHA256SUMS (%x) from another clone", sha256.Sum256(first)), nil
}
