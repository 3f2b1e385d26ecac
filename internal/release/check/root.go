package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/docs"
)

// needs says what of these programs is missing, or that the rights of root are.
func needs(programs ...string) error {
	if os.Getuid() != 0 {
		return skip("it needs the rights of root, for chroot")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return skip(p + " is missing")
		}
	}
	return nil
}

// busybox makes a root with a shell and the small tools of busybox, and nothing else.
func busybox(ctx context.Context, dir string) error {
	if err := needs("busybox", "unshare", "chroot", "mknod"); err != nil {
		return err
	}
	_, err := command(ctx, "sh", "-ec", `
		mkdir -p "$1/bin" "$1/proc" "$1/dev" "$1/srv" && mkdir -m 1777 "$1/tmp"
		cp "$(command -v busybox)" "$1/bin/busybox"
		mknod -m 666 "$1/dev/null" c 1 3
		chroot "$1" /bin/busybox --install -s /bin || { echo "busybox is not static: install busybox-static"; exit 1; }`, "sh", dir)
	return err
}

// debianRoot makes a root of Debian, once for all steps.
func (r *release) debianRoot(ctx context.Context) (string, error) {
	if r.debian != "" {
		return r.debian, nil
	}
	if err := needs("debootstrap", "unshare", "chroot", "apt-get"); err != nil {
		return "", err
	}
	dir := filepath.Join(r.work, "debian")
	_, err := command(ctx, "sh", "-ec", `
		. /etc/os-release
		mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" | head -n 1)
		debootstrap --variant=minbase "$VERSION_CODENAME" "$1" "$mirror"`, "sh", dir)
	if err == nil {
		r.debian = dir
	}
	return dir, err
}

// inside runs a script of the shell in a root, as process 1 of a namespace.
func inside(ctx context.Context, root, script string, more ...string) (string, error) {
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc=" + filepath.Join(root, "proc")}, more...)
	args = append(args, "chroot", root, "/bin/sh", "-c", script)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/srv"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

// mark stands in the output after that of a command, before its exit status.
const mark = "@@ "

// typed makes a script that does what a document shows, in one shell as a reader has it, and
// returns the commands. Blocks that a document does not run, for a reason that has the word first,
// are typed as well.
func typed(text, first string) (script string, commands []docs.Command, err error) {
	blocks, err := docs.Blocks(text)
	if err != nil {
		return "", nil, err
	}
	var lines strings.Builder
	lines.WriteString("exec 2>&1\n")
	for _, b := range blocks {
		if b.File != "" {
			fmt.Fprintf(&lines, "cat >%s <<'END OF THE FILE'\n%s\nEND OF THE FILE\n", b.File, b.Text)
		}
		if first != "" && strings.Contains(b.NoRun, first) {
			b.NoRun = ""
		}
		typed, err := b.Commands()
		if err != nil {
			return "", nil, err
		}
		for _, c := range typed {
			fmt.Fprintf(&lines, "%s\nstatus=$?; echo '%s'$status; (exit $status)\n", c.Text, mark)
		}
		commands = append(commands, typed...)
	}
	lines.WriteString("exit 0\n")
	return lines.String(), commands, nil
}

// itemsDied matches the line by which nixie run says that items died.
var itemsDied = regexp.MustCompile(`(?m)^\d+ items?: .*\b[1-9]\d* dead\b`)

// compare compares what the commands printed with what the document shows.
func compare(commands []docs.Command, output string) error {
	for i, c := range commands {
		printed, rest, found := strings.Cut(output, mark)
		if !found {
			return fmt.Errorf("$ %s: it did not come to its end:\n%s", c.Text, output)
		}
		status, rest, _ := strings.Cut(rest, "\n")
		output = rest
		shown := i+1 < len(commands) && commands[i+1].Text == "echo $?"
		// A document that shows that items of a job died need not show that it ends with 5.
		shown = shown || status == "5" && itemsDied.MatchString(c.Output)
		if status != "0" && !shown {
			return fmt.Errorf("$ %s: exit status %s:\n%s", c.Text, status, printed)
		}
		if c.Output != "" && !docs.Matches(c.Output, printed) {
			return fmt.Errorf("$ %s\nshown:\n%s\nprinted:\n%s", c.Text, c.Output, printed)
		}
	}
	return nil
}
