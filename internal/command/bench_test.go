//go:build linux

package command

import (
	"os"
	"os/exec"
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
