//go:build linux

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/hostile"
)

// Values arrive byte for byte as argument, in the environment and on standard input, and no part of
// them is executed.
func TestB110_HostileItemsArriveAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	canary := filepath.Join(dir, "canary")
	values := hostile.Values(canary)
	if len(values) < 200 {
		t.Fatalf("only %d values", len(values))
	}
	direct, err := parseTemplate([]string{"self", "{v}", "--", "{}", "{{v}}", "${v}"}, false)
	if err != nil {
		t.Fatal(err)
	}
	script, err := parseTemplate([]string{"sh", "-c", `printf '%s\0' "$1" "$NIXIE_FIELD_V"; cat`, "sh", "{v}"}, false)
	if err != nil {
		t.Fatal(err)
	}
	env := NewEnvironment(os.Environ())
	for _, value := range values {
		lookup := func(string) (string, bool) { return value, true }
		args, err := direct.Expand(lookup)
		if err != nil {
			t.Fatal(err)
		}
		spec := self("args", args[1:]...)
		r := mustRun(t, spec)
		all := strings.Join([]string{value, "--", value, "{v}", "${v}"}, "\x00") + "\x00"
		if !bytes.HasSuffix([]byte(all), r.Stdout.Data) || r.Stdout.Dropped+int64(len(r.Stdout.Data)) != int64(len(all)) {
			t.Errorf("as arguments: %q became %q", value, r.Stdout.Data)
		}
		if args, err = script.Expand(lookup); err != nil {
			t.Fatal(err)
		}
		r = mustRun(t, Spec{Args: args, Stdin: []byte(value), TailLimit: 1 << 20,
			Env: env.For(ItemVariables{Fields: []Field{{"v", value}}})})
		if want := value + "\x00" + value + "\x00" + value; string(r.Stdout.Data) != want {
			t.Errorf("in a script: got %q, want %q", r.Stdout.Data, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files came to be: %v, %v", entries, err)
	}
}

func TestEnvironment(t *testing.T) {
	env := NewEnvironment([]string{"PATH=/bin", "NIXIE_STORE=secret", "X_NIXIE_=kept", "NIXIE_APP=kept", "NIXIE_STEPS=old",
		"NIXIE_REDRIVES=old", "NIXIE_HEADERS_FILE=old", "NIXIE_FIELD_X=old"})
	got := env.For(ItemVariables{
		ItemID: "i 1", Attempt: 2, Lease: 3, Verdict: "/v", Generation: 3, Operation: "op", HeadersFile: "/h",
		FirstFailedAt: time.Unix(0, 5e8), Steps: []string{"fetched", `a "b"`},
		Fields: []Field{{"a-b", "1"}, {"a_b", "2"}, {"PATH", "p"}, {"ü=x", "3"}, {"nul", "\x00"}, {"", "e"},
			{"huge", strings.Repeat("x", MaxVariable)}, {"LD_PRELOAD", "x"}},
	})
	want := []string{"PATH=/bin", "X_NIXIE_=kept", "NIXIE_APP=kept", "NIXIE_ITEM_ID=i 1", "NIXIE_ATTEMPT=2", "NIXIE_LEASE=3",
		"NIXIE_GENERATION=3", "NIXIE_REDRIVES=2", "NIXIE_FIRST_FAILED_AT=1970-01-01T00:00:00.5Z", "NIXIE_OPERATION=op",
		"NIXIE_HEADERS_FILE=/h", "NIXIE_VERDICT=/v",
		"NIXIE_STEPS=fetched,a \"b\"", `NIXIE_STEPS_JSON=["fetched","a \"b\""]`,
		"NIXIE_FIELD_A_B=1", "NIXIE_FIELD_PATH=p", "NIXIE_FIELD___X=3", "NIXIE_FIELD_=e", "NIXIE_FIELD_LD_PRELOAD=x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := env.With(Field{"NIXIE_APP", "other"}); !slices.Equal(got, []string{"PATH=/bin", "X_NIXIE_=kept", "NIXIE_APP=other"}) {
		t.Errorf("got %q", got)
	}
	if got := env.For(ItemVariables{}); !slices.Equal(got, want[:3]) {
		t.Errorf("got %q", got)
	}
}

// A command starts with the largest variable and the largest set of fields.
func TestEnvironmentFitsTheSystem(t *testing.T) {
	var fields []Field
	for i := range 10 {
		name := strings.Repeat("N", i+1)
		fields = append(fields, Field{name, strings.Repeat("v", MaxVariable-len(fieldPrefix)-len(name)-2)})
	}
	env := NewEnvironment(nil).For(ItemVariables{Fields: fields})
	if len(env) != 4 {
		t.Errorf("%d variables, want 4", len(env))
	}
	if r := mustRun(t, Spec{Args: []string{"true"}, Env: env}); r.ExitCode != 0 {
		t.Errorf("got %+v", r)
	}
}
