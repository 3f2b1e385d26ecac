package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/store"
)

// logFlags are --log-format and --log-level.
type logFlags struct{ format, level string }

func (f *logFlags) register(fs *pflag.FlagSet) {
	fs.Var(newChoice(&f.format, "", "text", "json"), "log-format",
		"log to standard error, also what else would be written there (default $NIXIE_LOG_FORMAT)")
	fs.Var(newChoice(&f.level, "", "debug", "info", "warn", "error"), "log-level",
		"least level of a record (default $NIXIE_LOG_LEVEL, else info)")
}

// logger returns the logger that flags and settings ask for, which gets all lines of standard
// error from then on; nil means none.
func (f *logFlags) logger(g *globals) (*slog.Logger, error) {
	format := cmp.Or(f.format, g.config.Of("log.format"))
	if format == "" && f.level != "" {
		format = "text"
	}
	if format == "" {
		return nil, nil //nolint:nilnil // no logger is wanted
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(f.level, g.config.Of("log.level")))); err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(g.Err, opts)
	if format == "json" {
		handler = slog.NewJSONHandler(jsonLines{g.Err}, opts)
	}
	log := slog.New(handler)
	g.Err = &logLines{log: log}
	return log, nil
}

// jsonLines escapes what would act on a terminal in lines of JSON. Each write is a line.
type jsonLines struct{ io.Writer }

func (j jsonLines) Write(line []byte) (int, error) {
	_, err := j.Writer.Write(append(escapeJSON(bytes.TrimSuffix(line, []byte("\n"))), '\n'))
	return len(line), err
}

// logLines makes a record of each line that is written: a warning if it begins as our warnings do.
type logLines struct {
	log *slog.Logger

	mu   sync.Mutex
	left []byte // of a line that is not whole
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.SplitAfter(string(append(l.left, p...)), "\n")
	for _, line := range lines[:len(lines)-1] {
		l.record(line)
	}
	l.left = []byte(lines[len(lines)-1])
	return len(p), nil
}

func (l *logLines) record(line string) {
	text := strings.TrimSpace(line)
	if warning, is := strings.CutPrefix(text, "nixie: "); is {
		l.log.Warn(warning)
	} else if text != "" {
		l.log.Info(text)
	}
}

// telemetryFlags are the flags about telemetry of commands that work.
type telemetryFlags struct {
	logFlags
	metrics string
	hosts   []string

	on     bool // there are logs: no progress is shown
	told   *app.Telemetry
	server *serve.Server // nil: no metrics
	up     atomic.Bool   // the source answers the worker
	ends   []func()      // in the reverse order
}

func (f *telemetryFlags) register(fs *pflag.FlagSet) {
	f.logFlags.register(fs)
	fs.StringVar(&f.metrics, "metrics", "", "loopback address that answers with metrics and health while this command runs; "+
		"port 0 takes a free one (default $NIXIE_METRICS, else none)")
	registerHosts(fs, &f.hosts)
}

func registerHosts(fs *pflag.FlagSet, hosts *[]string) {
	fs.StringArrayVar(hosts, "host", nil, "answer requests that ask for this name as well, next to localhost and IP addresses; "+
		"also $NIXIE_HOSTS; repeatable")
}

// observe makes what tells of the work: in metrics, in logs, and by OTLP if variables ask for it.
func (g *globals) observe(ctx context.Context, metrics bool, log *slog.Logger) (told *app.Telemetry, end func(), err error) {
	warn := func(text string) { fmt.Fprintf(g.Err, "nixie: %s\n", escape(text)) }
	end = func() {}
	o := app.Observation{Metrics: metrics, Log: log}
	otlp, err := serve.Providers(ctx, g.Env, g.Now, warn)
	if err != nil {
		return nil, end, err
	}
	if otlp != nil {
		o.Traces, o.Meters = otlp.Traces, otlp.Meters
		end = func() {
			if err := otlp.Shutdown(ctx); err != nil {
				warn(err.Error())
			}
		}
	}
	told, err = app.NewTelemetry(o)
	return told, end, err
}

// finish ends what begin and answer began.
func (f *telemetryFlags) finish() {
	for _, end := range slices.Backward(f.ends) {
		end()
	}
	f.ends = nil
}

// begin listens, and makes what tells of the work.
func (f *telemetryFlags) begin(ctx context.Context, g *globals) error {
	address := cmp.Or(f.metrics, g.config.Of("metrics"))
	if config.SameAddress(address, g.config.Of("listen")) {
		return usagef("--metrics is %s, where nixie serve listens: give another port", address)
	}
	log, err := f.logger(g)
	if err != nil {
		return err
	}
	var end func()
	if f.told, end, err = g.observe(ctx, address != "", log); err != nil {
		return err
	}
	f.ends = append(f.ends, end)
	f.on = log != nil
	if address == "" {
		return nil
	}
	f.server, err = serve.New(serve.Config{
		Listen: address, Flag: "--metrics", Hosts: config.Hosts(f.hosts, g.Env), Metrics: f.told.Metrics(), Version: versions(),
		Clock: g.Now, Log: log, Checks: []serve.Check{{Name: "source", Do: f.source}},
	})
	if err == nil {
		f.ends = append(f.ends, f.server.Close)
		g.say("metrics: http://%s/metrics", f.server.Address())
	}
	return err
}

// connected is that of an observer.
func (f *telemetryFlags) connected(_ string, up bool) { f.up.Store(up) }

// source checks that the queue or broker answers the worker.
func (f *telemetryFlags) source(context.Context) error {
	if f.up.Load() {
		return nil
	}
	return nixie.Errorf(nixie.CodeUnavailable, "the source has not answered the worker, which tries again")
}

// answer answers requests until end is called: also while the summary is printed, so that a last
// scrape can see the whole work. The store may be nil.
func (f *telemetryFlags) answer(ctx context.Context, st store.Store) error {
	if st != nil {
		if err := f.told.Gauges(func(ctx context.Context) (nixie.Overview, error) { return app.Overview(ctx, st) }); err != nil {
			return err
		}
	}
	if f.server == nil {
		return nil
	}
	if st != nil {
		f.server.Use(st)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.server.Run(running) // its listener is open until it is stopped
	}()
	f.ends = append(f.ends, func() {
		stop()
		<-ended
	})
	return nil
}

// close closes the store of commands that work. What tells of the work looks at the store until
// then.
func (h *handling) close(st store.Store) {
	h.finish()
	_ = st.Close() // everything that counts is committed
}

// open opens the store of commands that work, and answers requests about it.
func (h *handling) open(ctx context.Context, opts app.Options) (store.Store, error) {
	opts.Observer = h.told.Observer()
	st, err := h.globals.open(opts)
	if err != nil {
		return nil, err
	}
	if err := h.answer(ctx, st); err != nil {
		h.close(st)
		return nil, err
	}
	return st, nil
}
