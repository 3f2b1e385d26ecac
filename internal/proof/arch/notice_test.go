package arch

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write NOTICE anew")

// noticed matches the files that who passes the program on has to pass on as well.
var noticed = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([.-][\w.-]+)?$`)

const noticeHead = `Nixie is under the Apache License, Version 2.0: see LICENSE. The program nixie
contains parts of the modules below, whose licences and notices follow. Modules
with the same text share it.

The image for containers also has the certificates of authorities that Debian packages as
ca-certificates: a list by the Mozilla Foundation, under the Mozilla Public License 2.0,
https://www.mozilla.org/MPL/2.0/. They are data, in the form in which the package has them.
Its label nixie.ca-certificates names the version. Its time zones are those of the Go
distribution, from the time zone database of IANA, which is in the public domain.
`

// TestNotice compares NOTICE with the licences of all that the program links, on each system that
// it is released for. Each of them is permissive. With -update it writes the file anew.
func TestNotice(t *testing.T) {
	texts := map[string][]string{} // modules by text
	for module, dir := range linked(t) {
		if _, why := Licence(licenceText(t, dir), true); why != "" {
			t.Errorf("%s: %s", module, why)
		}
		found := 0
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || !noticed.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			found++
			plain := strings.Trim(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
			texts[plain] = append(texts[plain], module+", "+e.Name())
		}
		if found == 0 {
			t.Errorf("%s has no licence", module)
		}
	}
	var parts []string
	for text, modules := range texts {
		slices.Sort(modules)
		parts = append(parts, strings.Join(modules, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	rule := "\n" + strings.Repeat("=", 80) + "\n"
	want := noticeHead + rule + strings.Join(parts, rule)
	const path = "../../../NOTICE"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if !bytes.Contains(has, []byte(part)) {
			t.Errorf("NOTICE lacks, or has otherwise:\n%.400s", part)
		}
	}
	if string(has) != want {
		t.Error("NOTICE is not what the program links: go test ./internal/proof/arch -run TestNotice -update")
	}
}

// linked returns the folders of the modules that the program links, and of the standard library.
func linked(t *testing.T) map[string]string {
	t.Helper()
	run := func(system string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = "../../.."
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return string(out)
	}
	all := map[string]string{"Go standard library": strings.TrimSpace(run("linux", "env", "GOROOT"))}
	for _, system := range []string{"linux", "windows", "darwin"} {
		list := run(system, "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Dir}}{{end}}{{end}}`, "./cmd/nixie")
		for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
			if module, dir, ok := strings.Cut(lines.Text(), "\t"); ok {
				all[module] = dir
			}
		}
	}
	if len(all) < 10 {
		t.Fatalf("the program links only %v", fmt.Sprint(slices.Collect(maps.Keys(all))))
	}
	return all
}
