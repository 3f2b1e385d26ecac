package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

func TestParseStep(t *testing.T) {
	for text, want := range map[string]struct {
		label string
		args  []string
		logs  bool
	}{
		"commit agent: a b":               {"commit agent: a b", []string{"a", "b"}, true},
		"commit shell : x":                {"commit shell: x", []string{"sh", "-c", "x"}, false},
		"persistent exec: a":              {"persistent exec: a", []string{"a"}, false},
		"commit persistent exec: a":       {"commit persistent exec: a", []string{"a"}, false},
		"persistent  commit shell: x":     {"persistent  commit shell: x", []string{"sh", "-c", "x"}, false},
		"exec: gofmt -w {file}":           {"exec: gofmt -w {file}", []string{"gofmt", "-w", "a.go"}, false},
		" exec :  true ":                  {"exec: true", []string{"true"}, false},
		"agent: ./fix {}":                 {"agent: ./fix {}", []string{"./fix", "whole"}, true},
		"agent: claude -p '/process {}'":  {"agent: claude -p '/process {}'", []string{"claude", "-p", "/process whole"}, true},
		`agent: a "say \"{file}\"" b\ c`:  {`agent: a "say \"{file}\"" b\ c`, []string{"a", `say "a.go"`, "b c"}, true},
		"agent: a '' \"'\" '$5 {{x}}'":    {"agent: a '' \"'\" '$5 {{x}}'", []string{"a", "", "'", "$5 {x}"}, true},
		"agent: a x{file}y{}z --f={file}": {"agent: a x{file}y{}z --f={file}", []string{"a", "xa.goywholez", "--f=a.go"}, true},
		"shell: go vet ./... && echo ok":  {"shell: go vet ./... && echo ok", []string{"sh", "-c", "go vet ./... && echo ok"}, false},
		"shell: awk '{{print}}' $f":       {"shell: awk '{{print}}' $f", []string{"sh", "-c", "awk '{print}' $f"}, false},
		"shell: echo ${f} {a,b} { :; }":   {"shell: echo ${f} {a,b} { :; }", []string{"sh", "-c", "echo ${f} {a,b} { :; }"}, false},
		"shell: echo a:b":                 {"shell: echo a:b", []string{"sh", "-c", "echo a:b"}, false},
		"shell: cd a\nmake":               {"shell: cd a make", []string{"sh", "-c", "cd a\nmake"}, false},
	} {
		s, err := command.ParseStep(text)
		if err != nil || s.Label != want.label || s.Logs != want.logs || s.Commits != strings.Contains(text, "commit ") ||
			s.Persistent != strings.Contains(text, "persistent ") {
			t.Errorf("%q: %q, logs %t, %v", text, s.Label, s.Logs, err)
			continue
		}
		args, err := s.Expand(func(path string) (string, bool) { return map[string]string{"file": "a.go", "": "whole"}[path], true })
		if err != nil || !slices.Equal(args, want.args) {
			t.Errorf("%q: %q, %v", text, args, err)
		}
	}
}

func TestParseStepRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "has no type",
		"go test":                 "has no type",
		"Shell: x":                "has no type",
		"commit: x":               "has no type",
		"commit commit exec: x":   "has no type",
		"persistent: x":           "has no type",
		"persist exec: x":         "has no type",
		"shell:":                  "is empty",
		"exec: ":                  "is empty",
		"exec: sh -c 'x'":         "it is only split at blanks",
		"exec: {file}":            "an item cannot choose the program",
		"exec: rm --file={file}":  "inside a longer argument",
		"shell: {file}":           "the script is a placeholder",
		"shell: rm {a.b[0]}":      "the script has a placeholder",
		"shell: rm ${item.path}":  "the script has ${item.path}",
		"shell: ${x} ${a.b}":      "the script has ${a.b}",
		"shell: \xff":             "not valid UTF-8",
		"agent: a 'b":             "the quote ' is not closed",
		"agent: ''":               "command is empty",
		"agent: {file}":           "an item cannot choose the program",
		"agent: ./{file} x":       "an item cannot choose the program",
		"agent: '' {file}":        "command is empty",
		"commit exec: {file}":     "an item cannot choose the program",
		"commit exec: {} x":       "an item cannot choose the program",
		"commit agent: {file}":    "an item cannot choose the program",
		"commit agent: a{file}":   "an item cannot choose the program",
		"commit shell: {file}":    "the script is a placeholder",
		"commit shell: a {file}":  "the script has a placeholder",
		"agent: a b | tee c":      `it has "|", which only a shell carries out`,
		"agent: a && b":           `it has "&"`,
		`agent: a "${HOME:-x}"`:   `it has "$"`,
		`agent: a "$HOME"`:        `it has "$"`,
		"agent: a `b`":            "which only a shell carries out",
		"agent: a '/p ${item}'":   "it has ${item}, which is another tool's: write {}",
		"agent: a ${item.path}":   "it has ${item.path}, which is another tool's: write {path}",
		"exec: true {{":           "",
		"shell: echo ${item:-.x}": "",
	} {
		_, err := command.ParseStep(text)
		if says == "" && err == nil {
			continue
		}
		if err == nil || says == "" || !strings.Contains(err.Error(), says) || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// An item's value is never an option of an agent.
func TestAgentOption(t *testing.T) {
	for text, refused := range map[string]bool{
		"agent: a {f}": true, "agent: a '{f}x'": true, "agent: a --f={f}": false, "exec: a {f}": false,
		"commit agent: a {f}": true, "commit agent: a '{none}{f}'": true, "agent: a '{none}-{f}'": false, "commit exec: a {f}": false,
	} {
		s, err := command.ParseStep(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Expand(func(path string) (string, bool) { return map[string]string{"f": "--danger"}[path], true })
		o := nixie.OutcomeOf(err)
		if (err != nil) != refused || refused && (o.Class != nixie.ClassPermanent || o.Reason != nixie.ReasonValidation) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// No part of an item becomes a script, and each step has a name that a failure can hold.
func FuzzParseStep(f *testing.F) {
	for _, text := range []string{"exec: a {b}", "shell: x {{y}} ${z}", "agent: {}", "agent: a '{b} c' \"d\"", "shell: ${a.b}",
		"exec: {{a}} {3}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := command.ParseStep(text)
		if err != nil {
			return
		}
		if nixie.CheckName("step", s.Label) != nil || s.Label == "" {
			t.Errorf("%q is named %q", text, s.Label)
		}
		if strings.HasPrefix(strings.TrimPrefix(s.Label, "commit "), "shell:") && (len(s.Paths()) > 0 || s.Program() != "sh") {
			t.Errorf("%q has placeholders for %q", text, s.Paths())
		}
		args, err := s.Expand(func(string) (string, bool) { return "data", true })
		if err != nil || args[0] != s.Program() {
			t.Errorf("%q runs %q, %v", text, args, err)
		}
	})
}
