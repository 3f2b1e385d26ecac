package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
)

// measurement describes one measurement.
type measurement struct {
	name, what string
	part       int // one in that many of the records
	bytes      int // of a record
	dies       bool
	returns    bool
	left       int64                                // records that the last handler may leave uncommitted when it ends the work
	before     func(context.Context, *course) error // makes what run finds, not measured
	run        func(context.Context, *course) error
}

// measurements lists all, compared ones next to each other.
func measurements() []measurement {
	return []measurement{
		{name: "watermill", what: "router of watermill-kafka with its poison queue, the same handler", part: 20, bytes: usual, left: 1,
			before: filled, run: router},
		{name: "raw", what: "poll loop of franz-go that commits after each poll", part: 1, bytes: usual, before: filled, run: rawLoop},
		{name: "nixie", what: "a worker on the driver, a handler that does nothing", part: 1, bytes: usual, before: filled, run: consume},
		{name: "nixie-retries", what: "1 % fail once and wait on a stage", part: 1, bytes: usual, before: filled, run: consume},
		{name: "nixie-letters", what: "all die; a letter each", part: 10, bytes: usual, dies: true, before: filled, run: consume},
		{name: "produce", what: "the same records produced by franz-go, acknowledged by all", part: 10, bytes: usual, run: produce},
		{name: "redrive", what: "letters of a topic back to where they came from", part: 10, bytes: usual, dies: true, returns: true,
			before: died, run: redriveTopic},
		{name: "redrive-office", what: "letters of an office in SQLite, the same way", part: 10, bytes: usual, returns: true,
			before: diedToOffice, run: redriveOffice},
		{name: "nixie-large", what: "10 MB each, handlers that take 50 ms", part: 20_000, bytes: large, before: filled, run: consume},
	}
}

const (
	usual = 200
	large = 10_000_000
	parts = 4
	slow  = 50 * time.Millisecond
)

// course describes the work of a child.
type course struct {
	Name, Seed, Topic, Folder, Profile string
	N, Bytes                           int
}

// result is the result of a child.
type result struct {
	N    int
	Wall time.Duration
	CPU  time.Duration
	Peak int64
}

func (r result) rate() float64     { return float64(r.N) / r.Wall.Seconds() }
func (r result) wallEach() float64 { return 1 / r.rate() }
func (r result) cpuEach() float64  { return float64(r.CPU.Nanoseconds()) / 1000 / float64(r.N) }
func (r result) peak() float64     { return float64(r.Peak) }

func (c *course) letters() string { return c.Topic + ".dlq" }

// stage is the retry topic of records that fail once.
var stage = broker.Stage{Channel: "{source}.retry.100ms", Delay: 100 * time.Millisecond}

func client(seed string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, kgo.SeedBrokers(seed), kgo.ProducerBatchMaxBytes(16<<20), kgo.ProducerLinger(0))...)
}

// prepare makes the topics and their records.
func prepare(ctx context.Context, seed, folder string, m *measurement, o options) (course, error) {
	c := course{Name: m.name, Seed: seed, Folder: folder, Topic: fmt.Sprintf("bench-%d-%s-%x", os.Getpid(), m.name, time.Now().UnixNano()),
		Profile: o.profile, N: max(o.records/m.part, 10), Bytes: m.bytes}
	cl, err := client(seed)
	if err != nil {
		return c, err
	}
	defer cl.Close()
	most := strconv.Itoa(16 << 20)
	made, err := kadm.NewClient(cl).CreateTopics(ctx, parts, 1, map[string]*string{"max.message.bytes": &most}, c.Topic, c.letters(),
		stage.Of(c.Topic))
	if err := errors.Join(err, made.Error()); err != nil {
		return c, err
	}
	if m.before == nil {
		return c, nil
	}
	return c, m.before(ctx, &c)
}

// filled fills the topic.
func filled(ctx context.Context, c *course) error { return produce(ctx, c) }

// fill produces the records. Their values are random enough not to compress.
func fill(ctx context.Context, cl *kgo.Client, c *course) error {
	var failed error
	for n := range c.N {
		cl.Produce(ctx, &kgo.Record{Topic: c.Topic, Value: value(n, c.Bytes)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	return errors.Join(cl.Flush(ctx), failed)
}

func value(n, size int) []byte {
	text := make([]byte, 0, size)
	x := uint64(n) + 1
	for len(text) < size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		text = strconv.AppendUint(text, x, 36)
	}
	return text[:size]
}

// clean checks the work and removes its topics.
func clean(ctx context.Context, c *course, m *measurement) error {
	cl, err := client(c.Seed)
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	ends, err := admin.ListEndOffsets(ctx, c.Topic, c.letters())
	if err != nil {
		return err
	}
	count := map[string]int64{}
	ends.Each(func(o kadm.ListedOffset) { count[o.Topic] += o.Offset })
	records := int64(c.N)
	if m.returns {
		records *= 2
	}
	if m.dies && count[c.letters()] != int64(c.N) || count[c.Topic] != records {
		return fmt.Errorf("%d records and %d letters of %d", count[c.Topic], count[c.letters()], c.N)
	}
	if m.before != nil {
		offsets, err := admin.FetchOffsets(ctx, c.Topic)
		if err != nil {
			return err
		}
		done := int64(0)
		for _, o := range offsets[c.Topic] {
			done += o.At
		}
		if done < int64(c.N)-m.left {
			return fmt.Errorf("%d of %d are committed", done, c.N)
		}
	}
	_, err = admin.DeleteTopics(ctx, c.Topic, c.letters(), stage.Of(c.Topic))
	return err
}

// measureAsChild measures and prints the result.
func measureAsChild(text string) error {
	var c course
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Profile != "" {
		out, err := os.Create(c.Profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, m := range measurements() {
		if m.name != c.Name {
			continue
		}
		began, cpu := time.Now(), processor()
		if err := m.run(context.Background(), &c); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result{N: c.N, Wall: time.Since(began), CPU: processor() - cpu, Peak: peakMemory()})
	}
	return fmt.Errorf("no measurement %s", c.Name)
}

func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peakMemory returns the most bytes that were resident.
func peakMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kib int64
	_, _ = fmt.Sscan(strings.TrimSpace(string(rest)), &kib)
	return kib << 10
}
