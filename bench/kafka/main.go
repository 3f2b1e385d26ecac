// Command kafka measures consuming from a Kafka broker and redriving to it. It compares Nixie, its
// client alone and the router of Watermill, alternately in one run. Each measurement is a process
// of its own on a topic of its own, and is checked. README.md in the folder above explains the
// numbers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// target bounds the client's processor time for a record, as a multiple of that of another
// measurement in the same round. Or it bounds the memory of one measurement.
type target struct {
	name, one, other string
	most             float64 // times the other's
	least            float64 // or how many times more it costs the other at least
	memory           int64   // or bytes
}

// targets lists all.
var targets = []target{
	{name: "consume", one: "nixie", other: "raw", most: 2.5},
	{name: "consume-of-watermill", one: "nixie", other: "watermill", least: 3},
	{name: "retries-1", one: "nixie-retries", other: "nixie", most: 1.35},
	{name: "letters-100", one: "nixie-letters", other: "produce", most: 4},
	{name: "redrive", one: "redrive", other: "produce", most: 3.5},
	{name: "redrive-office", one: "redrive-office", other: "produce", most: 16},
	{name: "memory-of-10-MB", one: "nixie-large", most: 1, memory: 200 << 20},
}

type options struct {
	records, rounds int
	only, profile   string
	report          bool
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		exit(measureAsChild(os.Args[2]))
		return
	}
	var o options
	flag.IntVar(&o.records, "size", 1_000_000, "records of a measurement; slower ones take a tenth or less")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds")
	flag.StringVar(&o.only, "scenarios", "", "measurements to run, by commas (default all)")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a profile of the last measurement to this file")
	flag.BoolVar(&o.report, "report", false, "exit with 0 also when a target is short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(compare(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare runs all measurements in rounds and prints the targets.
func compare(ctx context.Context, o options) (err error) {
	server, err := testservers.MakeKafka(ctx)
	if err != nil {
		return err
	}
	defer func() { exit(server.Stop()) }()
	results := map[string][]result{}
	all := measurements()
	for round := range o.rounds {
		for n := range all {
			m := &all[n]
			if round%2 == 1 {
				m = &all[len(all)-1-n]
			}
			if o.only != "" && !slices.Contains(strings.Split(o.only, ","), m.name) {
				continue
			}
			r, err := measure(ctx, server.Seed, m, o)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			results[m.name] = append(results[m.name], r)
			fmt.Fprintf(os.Stderr, "round %d %s: %.0f/s\n", round+1, m.name, r.rate())
		}
	}
	return report(results, o)
}

func report(results map[string][]result, o options) error {
	fmt.Printf("%-15s %10s %12s %10s\n", "", "1/s", "CPU µs each", "peak MiB")
	for _, m := range measurements() {
		if list := results[m.name]; len(list) > 0 {
			fmt.Printf("%-15s %10.0f %12.2f %10.1f   %s\n", m.name, median(list, result.rate), median(list, result.cpuEach),
				median(list, result.peak)/(1<<20), m.what)
		}
	}
	fmt.Println()
	short := 0
	for _, t := range targets {
		line, ok := t.judge(results)
		if line == "" {
			continue
		}
		fmt.Println(line)
		if !ok {
			short++
		}
	}
	if short > 0 && !o.report {
		return fmt.Errorf("%d targets are short", short)
	}
	return nil
}

// judge returns the verdict on a target, or nothing when it was not measured. It adds the ratio by
// the clock, in the same direction.
func (t *target) judge(results map[string][]result) (line string, ok bool) {
	list := t.ratios(results, result.cpuEach)
	if len(list) == 0 {
		return "", false
	}
	ratio, want := middle(list), fmt.Sprintf("at most %.2f", t.most)
	ok = ratio <= t.most
	if t.least > 0 {
		want, ok = fmt.Sprintf("%.2f", t.least), ratio >= t.least
	}
	word := "ok"
	if !ok {
		word = "short"
	}
	line = fmt.Sprintf("target %s %.2f want %s %s (%.2f to %.2f", t.name, ratio, want, word, slices.Min(list), slices.Max(list))
	if t.memory == 0 {
		line += fmt.Sprintf("; processor %.2f µs against %.2f; by the clock %.2f", median(results[t.one], result.cpuEach),
			median(results[t.other], result.cpuEach), middle(t.ratios(results, result.wallEach)))
	}
	return line + ")", ok
}

// ratios returns the ratio of each round.
func (t *target) ratios(results map[string][]result, cost func(result) float64) (list []float64) {
	one, other := results[t.one], results[t.other]
	for n := range one {
		switch {
		case t.memory > 0:
			list = append(list, one[n].peak()/float64(t.memory))
		case n >= len(other):
		case t.least > 0:
			list = append(list, cost(other[n])/cost(one[n]))
		default:
			list = append(list, cost(one[n])/cost(other[n]))
		}
	}
	return list
}

func median(list []result, of func(result) float64) float64 {
	values := make([]float64, len(list))
	for n := range list {
		values[n] = of(list[n])
	}
	return middle(values)
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// childFlag makes this program the child that measures.
const childFlag = "-child"

// measure fills a topic and starts a process that measures on it.
func measure(ctx context.Context, seed string, m *measurement, o options) (r result, err error) {
	folder, err := os.MkdirTemp("", "bench-kafka-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c, err := prepare(ctx, seed, folder, m, o)
	if err != nil {
		return r, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	own, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, own, childFlag, string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	return r, clean(ctx, &c, m)
}
