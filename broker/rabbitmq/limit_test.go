package rabbitmq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie/broker/rabbitmq"
	"github.com/nixie-go/nixie/internal/proof"
)

// program runs the program itself, with a store of the test, and returns what it printed.
type program struct {
	t     *testing.T
	store string
}

func newProgram(t *testing.T) *program {
	return &program{t, "sqlite://" + filepath.Join(t.TempDir(), "n.db")}
}

func (p *program) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), self, append([]string{"child"}, args...)...)
	cmd.Env = append(cmd.Environ(), "NIXIE_STORE="+p.store, "HOME="+p.t.TempDir())
	return cmd
}

func (p *program) run(code int, args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("nixie %q: exit %d, want %d\n%s", args, got, code, &said)
	}
	return said.String()
}

// letters counts those of the store.
func (p *program) letters() int {
	p.t.Helper()
	var found struct {
		Letters int `json:"letters"`
	}
	text := p.run(0, "dlq", "analyze", "-o", "json")
	if err := json.Unmarshal([]byte(text[strings.IndexByte(text, '{'):]), &found); err != nil {
		p.t.Fatal(err, text)
	}
	return found.Letters
}

// TestLimitOfEqualLetters adopts equal messages from a queue that drops what was delivered too
// often. Nothing that only looks touches them, and kills lose none: they repeat at most what was
// in hand.
func TestLimitOfEqualLetters(t *testing.T) {
	proof.Run(t, "rabbitmq-kills", func(t *testing.T, seed uint64) int {
		const n, kills, limit = 100, 2, 2
		r, p, chance := actual(t), newProgram(t), rand.New(rand.NewPCG(seed, 1))
		dead := r.declare(amqp.Table{"x-delivery-limit": int32(limit)})
		for range n {
			r.put(dead, amqp.Publishing{Body: []byte(`{"order":1}`)})
		}
		for range 5 {
			for _, args := range [][]string{{"dlq", "analyze", "--from", r.url(dead)}, {"dlq", "adopt", r.url(dead), "--dry-run"},
				{"dlq", "redrive", "--from", r.url(dead), "--to", r.url("x"), "--all", "--dry-run"}} {
				said := p.run(2, args...)
				names := args[1] == "adopt" || strings.Contains(said, "nixie dlq adopt")
				if !strings.Contains(said, "counts that as a delivery") || !names {
					t.Errorf("nixie %q: %s", args, said)
				}
			}
		}
		if left := r.ready(dead); left != n {
			t.Fatalf("%d are left after a look, want %d", left, n)
		}
		for range kills {
			adopt := p.command("dlq", "adopt", r.url(dead))
			if err := adopt.Start(); err != nil {
				t.Fatal(err)
			}
			before, some := r.ready(dead), chance.IntN(n)
			r.until("some are taken", func() bool { return before == 0 || r.ready(dead) < before-some*before/n })
			_ = adopt.Process.Kill() // it may be done already
			_ = adopt.Wait()
		}
		got := 0
		r.until("each is a letter", func() bool { // the server gives back what a killed one had when it notices
			p.run(0, "dlq", "adopt", r.url(dead))
			got = p.letters()
			return got >= n && r.ready(dead) == 0
		})
		if got > n+kills*rabbitmq.MostAtOnce {
			t.Errorf("seed %d: %d letters of %d messages", seed, got, n)
		}
		t.Logf("seed %d: %d letters of %d equal messages after %d kills: %d repeats", seed, got, n, kills, got-n)
		return kills
	})
}
