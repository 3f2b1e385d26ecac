//go:build unix

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// TestKilledAtAnyMoment kills runs of quick commands with kill -9. With one attempt
// for each item none is dead: a kill of the runner is not the item's fault. Only what
// ran at a kill may run again: what had succeeded stays so.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "run-kills", func(t *testing.T, seed uint64) int {
		const items, kills, between = 500, 3, 100
		rng := rand.New(rand.NewPCG(seed, 0))
		parallel := 1 + rng.IntN(4)
		d := newWorkspace(t)
		var list []byte
		for i := range items {
			list = fmt.Appendf(list, "%d\n", i)
		}
		d.write("items.txt", string(list))
		d.write("work", "#!/bin/sh\necho \"$1\" >> ledger\n")
		args := []string{"run", "items.txt", "--job", "quick", "-p", fmt.Sprint(parallel), "--max-attempts", "1", "-o", "json", "--",
			"./work", "{line}"}
		for kill := range kills {
			d.killAfter(rng.IntN(between), args)
			d.verify()
			if left := d.letters(""); len(left) > 0 {
				t.Errorf("%d are dead after %d kills of %d at a time", len(left), kill+1, parallel)
			}
		}
		s := d.summary(d.finish(d.command("nixie", args...)))
		d.verify()
		d.noProcess()
		if s.Items != items || s.Succeeded != items || s.Dead != 0 || s.Unfinished != 0 {
			t.Errorf("after %d kills of %d at a time: %+v", kills, parallel, s)
		}
		ran := times(d.ledger("ledger"))
		again := 0
		for _, n := range ran {
			again += n - 1
		}
		if len(ran) != items || again > kills*parallel {
			t.Errorf("%d items ran, %d runs more than that after %d kills of %d at a time", len(ran), again, kills, parallel)
		}
		return kills
	})
}

// killAfter starts a run and kills it with -9 once more commands have run.
func (d *workspace) killAfter(more int, args []string) {
	d.t.Helper()
	begun := len(d.ledger("ledger"))
	runner := d.start("nixie", args...)
	if !within(20*time.Second, func() bool { return len(d.ledger("ledger")) >= begun+more }) {
		d.t.Fatalf("the run does not get on: %d commands", len(d.ledger("ledger"))-begun)
	}
	if err := runner.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	if err := runner.Wait(); err == nil {
		d.t.Fatal("the run ended before it could be killed")
	}
	d.noProcess()
}
