// Command worktree compares the cost of an item in nixie map with the same work in a shell loop of
// git commands. Each item gets a worktree of its own, one commit in it, a merge into one branch,
// and the worktree is removed.
//
//	go run ./worktree [-nixie FILE] [-files N] [-items N] [-parallel N] [-report]
//
// It ends with one line for each target, and with exit status 1 if one is short.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// loop is the script that xargs runs for each item, with the commands that nixie map calls. A lock
// serializes the commands that git cannot run concurrently in one repository: making and removing
// worktrees, merges.
const loop = `set -e
n=$1
exec 9>lock
flock 9
git -C repo worktree add -q --detach --no-checkout "../trees/$n" main
flock -u 9
cd "trees/$n"
git checkout -q --force
` + change + `
head=$(git rev-parse HEAD)
cd ../..
flock 9
old=$(git -C repo rev-parse refs/heads/joined)
tree=$(git -C repo merge-tree --write-tree "$old" "$head")
new=$(git -C repo commit-tree "$tree" -p "$old" -p "$head" -m "item $n")
git -C repo update-ref refs/heads/joined "$new" "$old"
git -C repo worktree remove --force "../trees/$n"`

// change is the work of an item.
const change = `echo changed > "d$n/f0" && git commit -q -a -m "change $n"`

// run measures once.
type run struct {
	processor, wall time.Duration
}

// job is a repository and a list.
type job struct {
	folder                 string
	nixie                  string
	files, items, parallel int
}

func main() {
	j := job{}
	flag.StringVar(&j.nixie, "nixie", "", "the binary; empty builds it")
	flag.IntVar(&j.files, "files", 20_000, "in the repository, 100 in each folder")
	flag.IntVar(&j.items, "items", 200, "at most a hundredth of the files")
	flag.IntVar(&j.parallel, "parallel", 8, "items at once")
	report := flag.Bool("report", false, "exit status 0 also when a target is short")
	flag.Parse()
	ok, err := j.measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worktree:", err)
		os.Exit(1)
	}
	if !ok && !*report {
		os.Exit(1)
	}
}

func (j *job) measure() (ok bool, err error) {
	if j.items*100 > j.files {
		return false, fmt.Errorf("%d items need %d files", j.items, j.items*100)
	}
	if j.folder, err = os.MkdirTemp("", "nixie-bench-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(j.folder) //nolint:errcheck // it is a temporary one
	if err := j.prepare(); err != nil {
		return false, err
	}
	shell, err := j.timed("xargs", "-a", "items.txt", "-P", fmt.Sprint(j.parallel), "-n", "1", "sh", "-c", loop, "sh")
	if err != nil {
		return false, err
	}
	fmt.Printf("%-28s %s\n", "shell, a worktree each", j.perItem(shell))
	pool, err := j.mapped("pool")
	if err != nil {
		return false, err
	}
	fmt.Printf("%-28s %s\n", "nixie map", j.perItem(pool))
	sparse, err := j.mapped("sparse", "--checkout", "d0")
	if err != nil {
		return false, err
	}
	fmt.Printf("%-28s %s\n", "nixie map --checkout", j.perItem(sparse))
	inTime := target("map-pool", pool, shell)
	return target("map-sparse", sparse, shell) && inTime, nil
}

// most is the highest ratio of an item's processor time to that of the loop.
const most = 0.25

func target(name string, of, against run) bool {
	ratio := of.processor.Seconds() / against.processor.Seconds()
	word := "ok"
	if ratio > most {
		word = "short"
	}
	fmt.Printf("target %s %.2f want at most %.2f %s: against git in a shell loop (wall %.2f)\n", name, ratio, most, word,
		of.wall.Seconds()/against.wall.Seconds())
	return ratio <= most
}

func (j *job) perItem(r run) string {
	n := time.Duration(j.items)
	return fmt.Sprintf("%8.1f ms of processor an item, %8.1f ms of wall", (r.processor/n).Seconds()*1000, (r.wall/n).Seconds()*1000)
}

// prepare makes the repository and the list.
func (j *job) prepare() error {
	if j.nixie == "" {
		j.nixie = filepath.Join(j.folder, "nixie")
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nixie-go/nixie").Output()
		if err != nil {
			return fmt.Errorf("find nixie: %w", err)
		}
		build := exec.Command("go", "build", "-o", j.nixie, "./cmd/nixie")
		build.Dir = strings.TrimSpace(string(root))
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build nixie: %w: %s", err, out)
		}
	}
	for n := range j.files {
		name := filepath.Join(j.folder, "repo", fmt.Sprint("d", n/100), fmt.Sprint("f", n%100))
		if n%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(name, []byte(strings.Repeat(fmt.Sprintf("line of file %d\n", n), 40)), 0o644); err != nil {
			return err
		}
	}
	var list strings.Builder
	for n := range j.items {
		fmt.Fprintln(&list, n)
	}
	if err := os.WriteFile(filepath.Join(j.folder, "items.txt"), []byte(list.String()), 0o644); err != nil {
		return err
	}
	_, err := j.timed("sh", "-c",
		`cd repo && git init -q --initial-branch main && git add -A && git commit -q -m first && git branch joined && `+
			`mkdir ../trees && git gc -q`)
	return err
}

// mapped runs nixie map. A sparse worktree has only the folder of the first item; each item adds
// its change.
func (j *job) mapped(name string, flags ...string) (run, error) {
	step := `shell: n=$NIXIE_FIELD_LINE; ` + change
	if len(flags) > 0 {
		step = `shell: n=$NIXIE_FIELD_LINE; echo changed > "d0/g$n" && git add d0 && git commit -q -m "change $n"`
	}
	args := append([]string{"map", "run", "items.txt", "--repo", "repo", "--job", name, "-p", fmt.Sprint(j.parallel), "--no-output",
		"--commit-required", "--step", step}, flags...)
	return j.timed(j.nixie, args...)
}

// timed runs a command with all that it starts.
func (j *job) timed(program string, args ...string) (run, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = j.folder
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0", "GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@b",
		"GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@b", "XDG_STATE_HOME="+filepath.Join(j.folder, "state"),
		"NIXIE_STORE=sqlite://"+filepath.Join(j.folder, "nixie.db"))
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(begun)
	if err != nil {
		return run{}, fmt.Errorf("%s %s: %w: %.2000s", program, args[0], err, out)
	}
	usage, isUsage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !isUsage {
		return run{}, fmt.Errorf("this system does not say what processes cost")
	}
	return run{time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), wall}, nil
}
