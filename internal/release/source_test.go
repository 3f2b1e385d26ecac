package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository of two commits.
func repository(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "a@example")
	}
	dir := t.TempDir()
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	for _, text := range []string{"one", "two"} {
		write(t, filepath.Join(dir, "file"), text)
		git(t, dir, "add", "file")
		git(t, dir, "commit", "--quiet", "--message", text)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := run(t.Context(), dir, nil, "git", args...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReleaseIsOfACommit refuses what would be released under the name of a commit that it is not.
func TestReleaseIsOfACommit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before func(dir string) string // returns the repository
		refuse string
	}{
		{"clean", func(dir string) string { return dir }, ""},
		{"changed", func(dir string) string {
			write(t, filepath.Join(dir, "file"), "three")
			return dir
		}, " M file"},
		{"with a new file", func(dir string) string {
			write(t, filepath.Join(dir, "another"), "three")
			return dir
		}, "another"},
		{"shallow", func(dir string) string {
			git(t, dir, "clone", "--quiet", "--depth=1", "file://"+dir, "shallow")
			return filepath.Join(dir, "shallow")
		}, "git fetch --unshallow --tags"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := checkOut(t.Context(), tc.before(repository(t)), filepath.Join(t.TempDir(), "src"))
			if tc.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refuse) {
					t.Errorf("%v, want %q", err, tc.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, err := s.read("file"); err != nil || string(text) != "two" {
				t.Errorf("%v, the clone has %q", err, text)
			}
		})
	}
}
