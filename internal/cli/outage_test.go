//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// dependent is a command whose dependency is away until there is a file back. Exit code 69 says so.
const dependent = `#!/bin/sh
echo "$1" >> ledger
[ -e back ] || { echo 'cannot connect to the database' >&2; exit 69; }
`

// Outages kill nothing: in real time, with the defaults of each command that runs work. The test of
// package worker has longer ones in virtual time.
func TestOutage(t *testing.T) {
	t.Parallel()
	const messages, hands = 40, "4"
	var items []string
	for n := range messages {
		items = append(items, fmt.Sprint("item", n))
	}
	for _, on := range platforms {
		for _, verb := range []string{"", "work"} {
			if verb != "" && on.name != "SQLite" {
				continue
			}
			for _, away := range []time.Duration{time.Second, 20 * time.Second} {
				t.Run(fmt.Sprint(on.name, verb, away), func(t *testing.T) {
					t.Parallel()
					p := on.make(t, hands, items...)
					p.write("work", dependent)
					if verb != "" {
						p.write("q.jsonl", `{"body":"`+strings.Join(items, "\"}\n{\"body\":\"")+"\"}\n")
						p.nixie(0, "enqueue", "q", "--jsonl", "q.jsonl")
						p.line = []string{"work", "q", "--until-empty", "-p", hands, "--", "sh", "-c", `exec ./work "$(cat)"`}
					}
					back := make(chan time.Time, 1)
					cmd := p.running(1, p.line...)
					time.AfterFunc(away, func() {
						back <- time.Now()
						if err := os.WriteFile(p.path("back"), nil, 0o600); err != nil {
							t.Error(err)
						}
					})
					code, runs := ended(t, cmd), strings.Count(p.read("ledger"), "\n")
					if code != 0 || !strings.Contains(p.read("err"), fmt.Sprintf("%d succeeded", messages)) {
						t.Fatalf("exit %d\n%s", code, p.read("err"))
					}
					t.Logf("%-10s %-4s away for %-3s: 0 letters of %d, %3d attempts, all done %s later",
						on.name, verb, away, messages, runs, time.Since(<-back).Round(100*time.Millisecond))
				})
			}
		}
	}
}
