//go:build unix

package cli_test

import (
	"os/exec"
	"strings"
	"testing"
)

// What users, disks and repositories do to a job between its runs: each is told by name, with what
// to do, or does no harm.
func TestMapBadInputs(t *testing.T) {
	t.Parallel()
	const job = "state/nixie/worktrees/j~*"
	type look struct {
		code int
		says string
		args string
	}
	for name, tc := range map[string]struct {
		harm  string
		looks []look
	}{
		"a log of 1 GB": {`cd ` + job + `/logs/f1; truncate -s 1G 1.log; echo the end >> 1.log`, []look{
			{0, "the end", "map logs f1 --job j"}, {0, "1.log", "map dlq inspect f1 --job j"},
			{0, `"json_log_location"`, "map dlq export --job j --layout mapreduce --format jsonl"},
			{5, "1 dead", "map dlq retry --job j --force --reason again --yes"},
			{0, "is removed", "map clean --job j --force"},
		}},
		"no log": {`rm ` + job + `/logs/f1/1.log`, []look{
			{0, "is not here: nixie map clean removed it", "map logs f1 --job j"}, {0, "(not here: nixie map clean", "dlq show f1 --whole"},
			{5, "1 dead", "map dlq retry --job j --force --reason again --yes"},
		}},
		"the branch of the job": {`git -C repo update-ref -d refs/heads/nixie/j`, []look{
			{1, "branch nixie/j of job j is gone: git -C", "map resume --job j"},
			{0, "branch nixie/j is merged", "map merge --job j"}, {0, "is removed", "map clean --job j"},
		}},
		"the work of the job": {`git -C repo update-ref -d refs/nixie-work/j`, []look{
			{5, "1 dead", "map resume --job j"}, {0, "branch nixie/j is merged", "map merge --job j"},
			{0, "is removed", "map clean --job j"},
		}},
		"both": {`git -C repo update-ref -d refs/nixie-work/j; git -C repo update-ref -d refs/heads/nixie/j`, []look{
			{1, "branch nixie/j of job j is gone: git -C", "map resume --job j"}, {0, "is removed", "map clean --job j --force"},
		}},
		"the branch of a kept worktree": {`git -C repo update-ref -d refs/heads/nixie-attempts/j/f1/1`, []look{
			{0, "f1", "map kept --job j"}, {0, "nixie-attempts/j/f1/1", "map dlq inspect f1 --job j"},
			{5, "1 dead", "map dlq retry --job j --force --reason again --yes"}, {0, "is removed", "map clean --job j --force"},
		}},
		"the kept worktree": {`rm -rf ` + job + `/kept/f1-1`, []look{
			{0, "", "map kept --job j"}, {1, "no worktree of item f1 was kept", "map open f1 --job j"},
			{0, "(not here: nixie map clean", "dlq show f1 --whole"},
			{5, "1 dead", "map dlq retry --job j --force --reason again --yes"},
		}},
		"the target": {`git -C repo branch -m main trunk`, []look{
			{1, "is on another branch than main: check that one out", "map merge --job j"}, {5, "1 dead", "map resume --job j"},
		}},
		"a record that is cut": {`for f in ` + job + `/job.json; do echo '{' > "$f"; done`, []look{
			{1, "/job.json: unexpected end of JSON input", "map resume --job j"}, {1, "/job.json: ", "map list"},
		}},
		"a command line that is cut": {`for f in ` + job + `/run.json; do echo '{' > "$f"; done`, []look{
			{1, "/run.json: unexpected end of JSON input", "map resume --job j"}, {0, "nixie/j", "map list"},
		}},
		"a worktree cannot be made": {`rm -rf repo/.git/worktrees ` + job + `/pool; echo x > repo/.git/worktrees`, []look{
			{5, "1 dead", "map dlq retry --job j --force --reason again --yes"},
			{0, `"error_type":"WorktreeError"`, "map dlq export --job j --layout mapreduce --format jsonl"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.repository(2)
			d.nixie(5, "map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output", "-p", "1", "--max-attempts", "1",
				"--step", `agent: sh -c 'echo thinking > "$NIXIE_LOG_FILE"; [ {line} = f0 ] || exit 3; echo new > {line}
git commit -qam new'`)
			harm := exec.Command("sh", "-ec", tc.harm)
			harm.Dir, harm.Env = d.dir, d.env
			if out, err := harm.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, look := range tc.looks {
				r := d.nixie(look.code, strings.Fields(look.args)...)
				if !strings.Contains(r.out+r.err, look.says) || len(r.out) > 8<<20 {
					t.Errorf("%s: want %q in\n%.2000s%.2000s", look.args, look.says, r.out, r.err)
				}
			}
			d.verify()
		})
	}
}
