package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runLeaks are texts that commands print before they fail; each has the secret once.
func runLeaks() []string {
	return []string{
		"dial postgres://app:Tr0ub4dor@db/x: refused",
		"PASSWORD=Tr0ub4dor was refused",
		`{"error":"bad","api_key":"Tr0ub4dor"}`,
		"> Authorization: Bearer Tr0ub4dor",
		"curl --password Tr0ub4dor: exit 22",
		"ghp_Tr0ub4dor0token0123456789abcdefghijkl is revoked",
		"the job of cust-Tr0ub4dor failed",
		"the service said Tr0ub4dor",
	}
}

// What a command prints reaches neither the files of the store nor the screen
// with its secrets; nor does a custom command get them.
func TestR24_RunHidesSecrets(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	var list strings.Builder
	for i, text := range runLeaks() {
		fmt.Fprintf(&list, "{\"id\":\"n%d\"}\n", i)
		d.write(fmt.Sprintf("leak-n%d", i), text+"\n")
	}
	d.write("items.jsonl", list.String())
	d.write("handle", "#!/bin/sh\ncat leak-$1 >&2\ncat leak-$1\nexit 3\n")
	d.write("decide", "#!/bin/sh\ncat >> asked\nexit 11\n")
	d.env = append(d.env, "SERVICE_TOKEN=Tr0ub4dor")
	args := []string{"run", "items.jsonl", "--max-attempts", "2", "--backoff", "1ms", "--on-item-failure", "custom:./decide"}
	shown := d.nixie(5, append(args, "--mask", `cust-(\w+)`, "--", "./handle", "{id}")...)
	output := shown.out + shown.err + d.read("asked")
	for _, more := range [][]string{
		{"dlq", "list", "-o", "wide"}, {"dlq", "list", "-o", "json"}, {"dlq", "analyze"}, {"dlq", "export", "--unmask"}, {"dlq", "stats"},
		{"message", "list", "-o", "wide"},
		{"dlq", "show", "n3", "--unmask"}, {"message", "show", "n0", "--unmask", "-o", "json"}, {"message", "log", "n1"},
	} {
		r := d.nixie(0, more...)
		output += r.out + r.err
	}
	if strings.Contains(output, "Tr0ub4dor") || !strings.Contains(output, "***") {
		t.Errorf("shown:\n%s", output)
	}
	if !strings.Contains(shown.err, `--mask 'cust-(\w+)'`) {
		t.Errorf("the next command does not mask:\n%s", shown.err)
	}
	if held := d.storeFiles(); strings.Contains(held, "Tr0ub4dor") || !strings.Contains(held, "***") {
		t.Error("a secret is in the files of the store")
	}
}

// --no-mask keeps texts as they are.
func TestR24_RunUnmasked(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "1\n")
	r := d.nixie(5, "run", "items.txt", "--max-attempts", "1", "--no-mask", "--", "sh", "-c", "echo PASSWORD=Tr0ub4dor >&2; exit 3")
	if !strings.Contains(r.err, "\nPASSWORD=Tr0ub4dor\n") || !strings.Contains(d.storeFiles(), "Tr0ub4dor") {
		t.Errorf("hidden: %s", r.err)
	}
	d.nixie(2, "run", "items.txt", "--no-mask", "--mask", "x", "--", "true")
	if r := d.nixie(2, "run", "items.txt", "--mask", "(", "--", "true"); !strings.Contains(r.err, `mask "(" is no regular expression`) {
		t.Errorf("says %s", r.err)
	}
}

// storeFiles is everything that the store has on disk.
func (d *workspace) storeFiles() string {
	d.t.Helper()
	names, err := filepath.Glob(d.path("nixie.db*"))
	if err != nil || len(names) == 0 {
		d.t.Fatalf("%v, %v", names, err)
	}
	var all strings.Builder
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil {
			all.Write(data)
		}
	}
	return all.String()
}
