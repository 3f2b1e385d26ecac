package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newDoctor(g *globals) *cobra.Command {
	return g.inOffice(&cobra.Command{
		Use:   "doctor",
		Short: "Check store, disk, owners and clock, and say what to mend",
		Long: `Looks at where the store is and how it keeps its promises: durability settings,
free space where the store can tell, owners that ended without a stop, leases that
nobody ended, the clock, paused queues, blocked streams. Exit code 3 when something is wrong. Whether the data
itself is whole is found out by nixie verify.`,
		Example: `  nixie doctor
  nixie doctor -o json | jq -r '.findings[].fix'`,
	}, func(ctx context.Context, o *office.Office, _ []string) error {
		e, err := o.Inspect(ctx)
		if err != nil {
			return err
		}
		return cmp.Or(g.objectOf(e, e.Problems, func(w io.Writer) { printHealth(w, &e) }), exitIf(len(e.Problems) > 0, ExitThreshold))
	})
}

func printHealth(w io.Writer, e *office.HealthView) {
	var f facts
	f.add("store", e.Store, "engine", e.Engine, "schema", fmt.Sprintf("%d, this program knows %d", e.Schema, e.KnownSchema))
	for _, d := range e.Durability {
		f.add(d.Name, d.Value)
	}
	f.add("size", mebibytes(e.SizeBytes))
	if e.FreeBytes != nil {
		f.add("free space", mebibytes(*e.FreeBytes)+", reserve "+reserve(e.Reserve))
	}
	f.add("queues", fmt.Sprint(e.Queues), "clock", clock(e.Now), "last write", clock(e.LastWrite))
	if !e.OldestLease.IsZero() {
		f.add("oldest lease", "ends "+clock(e.OldestLease))
	}
	for _, o := range e.Owners {
		f.add("owner", fmt.Sprintf("%s, %s, since %s, %s", o.Name, either(o.Alive, "alive", "gone"), clock(o.StartedAt), plural(o.Leases, "lease")))
	}
	f.print(w)
	if len(e.Problems) == 0 {
		fmt.Fprintln(w, "\nnothing is wrong")
		return
	}
	fmt.Fprintln(w, "\nWrong")
	for _, found := range e.Problems {
		fmt.Fprintf(w, "  %s\n    fix: %s\n", escapeLine(found.What), escapeLine(found.Fix))
	}
}

func reserve(bytes *int64) string {
	if bytes == nil {
		return "none"
	}
	return mebibytes(*bytes)
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
