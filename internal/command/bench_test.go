//go:build linux

package command

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The benchmark compares Run with starting the process only, both four at a time.
func BenchmarkRunTrue(b *testing.B) {
	path, err := LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	item := []byte(`{"id":"0001","kind":"invoice","total":12}`)
	b.Run("minimal", func(b *testing.B) {
		parallel(b, func() error { return exec.Command(path).Run() })
	})
	b.Run("run", func(b *testing.B) {
		spec := Spec{Path: path, Args: []string{"true"}, Env: os.Environ()}
		parallel(b, func() error { return outcome(b, spec) })
	})
	b.Run("item", func(b *testing.B) {
		guard := startGuard(b, b.TempDir(), "bench")
		env := NewEnvironment(os.Environ())
		parallel(b, func() error {
			return outcome(b, Spec{
				Path: path, Args: []string{"true"}, Stdin: item, Timeout: DefaultGrace, Guard: guard,
				Env: env.For(ItemVariables{ItemID: "0001", Attempt: 1, Lease: 7, Fields: []Field{{"id", "0001"}, {"kind", "invoice"}}}),
			})
		})
	})
}

func outcome(b *testing.B, spec Spec) error {
	result, err := Run(b.Context(), spec)
	if err != nil {
		return err
	}
	return result.Err(nil)
}

func parallel(b *testing.B, do func() error) {
	b.SetParallelism(2) // 4 with 2 processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := do(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// What the language of workflow files costs a step: its values, besides starting its command.
func BenchmarkPrepare(b *testing.B) {
	none := func(string) (string, bool) { return "", false }
	words, err := ArgumentsOf([]string{"agent", "-p", strings.Repeat("see ${item.v} and ", 20)}, none)
	if err != nil {
		b.Fatal(err)
	}
	script, flow, err := ScriptOf(strings.Repeat("echo ${item.v} '${item.v}'\n", 20), func(string) bool { return false })
	if err != nil {
		b.Fatal(err)
	}
	value := oneValue(strings.Repeat("x", 1<<10))
	for _, s := range []Step{{Template: words, Flow: &Flow{}}, {Template: script, Flow: flow}} {
		b.Run(s.Program(), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Prepare(value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
