package match

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

const (
	minute     = time.Minute
	steadyPart = 0.9 // the part of the first minute's throughput that the last must reach
)

// steady puts a constant load on one library, and prints a line for each minute.
func (p *Programme) steady(ctx context.Context, o options, out io.Writer) (err error) {
	host, err := p.Open(ctx, o.folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	workspace, err := host.Workspace(ctx, o.scenarios[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workspace.Remove(context.WithoutCancel(ctx))) }()
	if err := workspace.Begin(ctx); err != nil {
		return err
	}
	for _, fact := range host.Facts() {
		fmt.Fprintln(out, fact)
	}
	e := &o.entrants[0]
	fmt.Fprintf(out, "%s: %s; %s, %d a second for %s. CPU is processors in use, of the client and of the server.\n", e.Name, e.Settings,
		o.scenarios[0], o.rate, o.steady)
	fmt.Fprintf(out, "%6s %9s %9s %8s %8s %6s %6s %9s %9s %9s %9s\n", "minute", "in/s", "out/s", "p50 ms", "p99 ms", "CPU", "server",
		"WAL MiB/s", "file MiB", "indexes", "dead rows")
	var rates []float64
	var wal int64
	load := contest.Steady{
		Entrant: e, Setup: workspace.Setup(), Rate: o.rate, Length: o.steady, Every: minute,
		Sampled: func(at time.Duration, s contest.Sample) {
			var r contest.Result
			trouble := ""
			if err := workspace.End(ctx, &r); err != nil {
				trouble = " " + err.Error()
			}
			seconds := s.Wall.Seconds()
			rates = append(rates, float64(s.Out)/seconds)
			fmt.Fprintf(out, "%6.1f %9.0f %9.0f %8.1f %8.1f %6.2f %6.2f %9.1f %9.1f %9.1f %9d%s\n", at.Minutes(),
				float64(s.In)/seconds, float64(s.Out)/seconds, s.Lag.P50.Seconds()*1e3, s.Lag.P99.Seconds()*1e3,
				s.CPU.Seconds()/seconds, s.ServerCPU.Seconds()/seconds, mebi(float64(r.WAL-wal))/seconds,
				mebi(float64(r.File)), mebi(float64(r.Indexes)), r.DeadRows, trouble)
			wal = r.WAL
		},
	}
	if err := load.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "Every message was handled as often as expected, with the bytes it was sent with.")
	if len(rates) < 2 {
		return nil
	}
	v := verdict{Name: "steady", Ratio: rates[len(rates)-1] / rates[0], Want: steadyPart}
	v.OK = v.Ratio >= v.Want
	fmt.Fprintln(out, v)
	if !v.OK && !o.reportOnly {
		return errShort
	}
	return nil
}
