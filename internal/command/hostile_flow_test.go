//go:build linux

package command

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/hostile"
)

// oneValue is ${item.v}.
type oneValue string

func (v oneValue) Value(path string) (string, bool) { return string(v), path == "item.v" }
func (oneValue) Known() []string                    { return []string{"item.v"} }

// quotings are the ways to write a value in a step of a file, and what a step prints then. A % is
// the value.
var quotings = map[string]struct{ kind, text, prints string }{
	"exec, an argument":        {"exec", "self args ${item.v} end", "%\x00end\x00"},
	"exec, inside":             {"exec", "self args a${item.v}b", "a%b\x00"},
	"exec, single quotes":      {"exec", "self args 'a ${item.v} b'", "a % b\x00"},
	"exec, double quotes":      {"exec", `self args "a ${item.v} b" ''`, "a % b\x00\x00"},
	"exec, twice":              {"exec", "self args x${item.v}${item.v}", "x%%\x00"},
	"agent, single quotes":     {"agent", "self args '/process ${item.v}'", "/process %\x00"},
	"claude":                   {"claude", "/process '${item.v}' $$HOME", "/process '%' $HOME\x00"},
	"claude, at its beginning": {"claude", "${item.v} b", "% b\x00"},
	"shell, bare":              {"shell", `printf '%s\0' ${item.v}`, "%\x00"},
	"shell, bare and inside":   {"shell", `printf '%s\0' a${item.v}b${item.v}`, "a%b%\x00"},
	"shell, double quotes":     {"shell", `printf '%s\0' "a ${item.v} b"`, "a % b\x00"},
	"shell, single quotes":     {"shell", `printf '%s\0' 'a ${item.v} b'`, "a % b\x00"},
	"shell, both quotes":       {"shell", `printf '%s\0' 'it'"'${item.v}'"'s'`, "it'%'s\x00"},
	"shell, a here-document":   {"shell", "cat <<END\na '${item.v}' \"${item.v}\" b\nEND", "a '%' \"%\" b\n"},
	"shell, a variable":        {"shell", `X=${item.v}; printf '%s\0' "$X"`, "%\x00"},
	"shell, in a substitution": {"shell", `printf '%s\0' "$(printf '%s.' ${item.v} "${item.v}")"`, "%.%.\x00"},
	"shell, of a function":     {"shell", `f() { printf '%s\0' "$@"; }; f ${item.v} 'x${item.v}'`, "%\x00x%\x00"},
	"shell, a word of a loop":  {"shell", `for x in ${item.v} "${item.v}"; do printf '%s\0' "$x"; done`, "%\x00%\x00"},
	"shell, a pattern":         {"shell", `case ${item.v} in ${item.v}) printf same ;; esac`, "same"},
	"shell, of another shell":  {"shell", `sh -c 'printf "%s\0" "$1"' sh ${item.v}`, "%\x00"},
	"the environment":          {"env", "a ${item.v} b", "a % b"},
}

// stride makes each way of quoting get one value of four, other ones than the way before: all
// together are thousands of processes.
const stride = 4

// Hostile values arrive byte for byte in each kind of step, however they are quoted, or the step is
// refused. No part of them is executed, and no file comes to be.
func TestHostileValuesOfWorkflows(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	canary := filepath.Join(dir, "canary")
	values := append(hostile.Values(canary), strings.Repeat("long ", 40<<10), "a\x00b", strings.Repeat("x", MaxValue))
	none := func(string) (string, bool) { return "", false }
	arrived, refused := map[string]int{}, map[string]int{}
	for way, name := range slices.Sorted(maps.Keys(quotings)) {
		q := quotings[name]
		s := stepOf(t, q.kind, q.text, none)
		for i, value := range values {
			if (i+way)%stride != 0 && i < len(values)-3 {
				continue
			}
			args, script, err := s.Prepare(oneValue(value))
			own, envErr := s.Variables(oneValue(value))
			if err != nil || envErr != nil {
				refused[q.kind]++
				if len(value) <= MaxValue && !strings.ContainsRune(value, 0) && !strings.HasPrefix(value, "-") {
					t.Errorf("%s: %.40q is refused: %v %v", name, value, err, envErr)
				}
				continue
			}
			env := NewEnvironment(NewEnvironment(os.Environ()).With(own...))
			spec := Spec{Args: args, Env: env.For(ItemVariables{}), TailLimit: 1 << 20}
			if args[0] == "self" {
				spec = self("args", args[2:]...)
				spec.TailLimit = 1 << 20
			}
			for _, v := range script {
				spec.Env = append(spec.Env, v.Name+"="+v.Value)
			}
			r, err := Run(t.Context(), spec)
			if err != nil { // two values may be too long together
				var start *StartError
				if refused[q.kind]++; len(value) < MaxValue || errors.As(err, &start) {
					t.Errorf("%s: %.40q: %v", name, value, err)
				}
				continue
			}
			want := strings.ReplaceAll(q.prints, "%", value)
			if !bytes.Equal(r.Stdout.Data, []byte(want)) || r.ExitCode != 0 {
				t.Errorf("%s: of %.60q came %.80q %q, want %.80q", name, value, r.Stdout.Data, r.Stderr.Data, want)
				continue
			}
			arrived[q.kind]++
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files came to be: %v, %v", entries, err)
	}
	t.Logf("arrived %v, refused %v", arrived, refused)
}

// stepOf makes a step of a file.
func stepOf(t *testing.T, kind, text string, constant func(string) (string, bool)) Step {
	t.Helper()
	s := Step{Flow: &Flow{}}
	var err error
	switch kind {
	case "shell":
		var flow *Flow
		if s.Template, flow, err = ScriptOf(text, func(string) bool { return false }); err == nil {
			s.Flow = flow
		}
	case "claude":
		s.Template, err = ArgumentsOf([]string{"self", "args", text}, constant)
	case "env":
		var value Text
		value, err = ParseText(text, constant)
		s.Env = []Setting{{"OWN", value}}
		s.Template = Template{args: []argument{textArgument("sh"), textArgument("-c"), textArgument(`printf %s "$OWN"`)}}
	default:
		s.Template, err = WordsOf(text, constant)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A hostile value as a folder leads to a folder in the workplace, or is refused.
func TestHostileFolders(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	for _, folder := range []string{"work/sub", "work/.git/hooks", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../other", filepath.Join(work, "out")); err != nil {
		t.Fatal(err)
	}
	text, err := ParseText("${item.v}", func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s := Step{Flow: &Flow{Dir: text}}
	for _, value := range append(hostile.Values("/canary"), "out", "../other", "sub/../../other", ".git/hooks", ".GIT", "sub/") {
		if got, err := s.Folder(work, oneValue(value)); err == nil && got != filepath.Join(work, "sub") && got != work {
			t.Errorf("%q leads to %s", value, got)
		}
		if data, err := TakeInside(work, value, 10); err == nil {
			t.Errorf("%q is the file %q", value, data)
		}
	}
	if got, err := s.Folder(work, oneValue("sub")); err != nil || got != filepath.Join(work, "sub") {
		t.Error(got, err)
	}
}
