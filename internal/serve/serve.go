// Package serve listens: metrics, health, numbers and the console now, the API later. It answers on
// loopback addresses only, because it knows no logins, and only to the names of [Config].
package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" //nolint:depguard // no server here has the default mux
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/store"
)

// Limits of a server. A client that sends or reads slowly is cut off.
const (
	headerWithin   = 5 * time.Second
	requestWithin  = 10 * time.Second
	answerWithin   = 30 * time.Second
	profileWithin  = 10 * time.Minute // of pprof, which records for as long as it is asked to
	idleWithin     = time.Minute
	maxHeaderBytes = 16 << 10
	stopWithin     = 10 * time.Second // for requests to end
)

// Config configures a server.
type Config struct {
	Listen  string       // loopback address; port 0 takes a free one
	Flag    string       // the flag that gives Listen, for errors
	Pprof   string       // loopback address for profiles; empty means none
	Hosts   []string     // names that requests may ask for, next to localhost and IP addresses
	Metrics http.Handler // of /metrics
	Checks  []Check      // of connectors
	Version any          // is shown as JSON
	Clock   func() time.Time
	Log     *slog.Logger // of errors of connections; nil means none
}

// Server answers requests. Make one with New.
type Server struct {
	c      Config
	store  store.Store // nil means none
	listen net.Listener
	pprof  net.Listener // nil means none
	checks []*checking
	look   answer[nixie.Overview]

	aborted context.Context
	abort   context.CancelFunc

	console http.Handler // nil means none
	work    sync.WaitGroup
	working context.Context // of work; it ends when Run stops to accept requests
	endWork context.CancelFunc
}

// New checks a config and listens. The caller calls Use for a store, and then Run or Close.
func New(c Config) (*Server, error) {
	if config.SameAddress(c.Pprof, c.Listen) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "--pprof and %s are both %s: give two addresses", c.Flag, c.Listen)
	}
	for _, name := range c.Hosts {
		if err := config.CheckHost(name); err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "--host: %w", err)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c}
	var err error
	if s.listen, err = listen(c.Listen, c.Flag); err != nil {
		return nil, err
	}
	if c.Pprof != "" {
		if s.pprof, err = listen(c.Pprof, "--pprof"); err != nil {
			return nil, errors.Join(err, s.listen.Close())
		}
	}
	s.aborted, s.abort = context.WithCancel(context.Background())
	s.working, s.endWork = context.WithCancel(s.aborted)
	for _, check := range c.Checks {
		s.checks = append(s.checks, s.newChecking(check))
	}
	return s, nil
}

// Use adds a store, which gives numbers and has to be well. It is called before Run.
func (s *Server) Use(st store.Store) {
	s.store = st
	s.look = answer[nixie.Overview]{keep: numbersFor, clock: s.c.Clock, within: s.aborted,
		ask: func(ctx context.Context) (nixie.Overview, error) { return app.Overview(ctx, st) }}
	for _, check := range storeChecks(st) {
		s.checks = append(s.checks, s.newChecking(check))
	}
}

// Mount adds a console, which answers what no other route does. It is called before Run.
func (s *Server) Mount(h http.Handler) { s.console = h }

// Go runs work that no request waits for. Its context ends when the server stops, and Run or Close
// wait for it.
func (s *Server) Go(do func(context.Context)) { s.work.Go(func() { do(s.working) }) }

// listen listens on a loopback address.
func listen(address, flag string) (net.Listener, error) {
	if err := config.CheckAddress(address); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s: %w", flag, err)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		host, port, _ := net.SplitHostPort(address)
		return nil, nixie.Errorf(nixie.CodeUnavailable, "port %s of %s is taken: end the program that has it, or give another one by %s",
			port, host, flag)
	case err != nil:
		return nil, nixie.Errorf(nixie.CodeUnavailable, "%s %s: %w", flag, address, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // the machine may name any address localhost
		return nil, errors.Join(nixie.Errorf(nixie.CodeInvalid, "%s: %s is no loopback address here", flag, address), l.Close())
	}
	return l, nil
}

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.listen.Addr().String() }

// PprofAddress returns the address of the profiles; "" means none.
func (s *Server) PprofAddress() string {
	if s.pprof == nil {
		return ""
	}
	return s.pprof.Addr().String()
}

// Run answers until ctx ends. Then it accepts no more, and lets requests end for 10 s, or until
// Abort. It leaves no goroutine behind but those of a store that does not end its calls.
func (s *Server) Run(ctx context.Context) error {
	servers := map[*http.Server]net.Listener{s.server(s.routes(), answerWithin): s.listen}
	if s.pprof != nil {
		servers[s.server(profiles(), profileWithin)] = s.pprof
	}
	failed := make(chan error, len(servers))
	var running sync.WaitGroup
	for server, l := range servers {
		running.Go(func() { failed <- server.Serve(l) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.endWork()
	ending, end := context.WithTimeout(s.aborted, stopWithin)
	defer end()
	for server := range servers {
		if server.Shutdown(ending) != nil {
			_ = server.Close() // its requests did not end in time
		}
	}
	s.abort()
	running.Wait()
	s.work.Wait()
	leaving, left := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer left()
	for _, c := range s.checks {
		c.wait(leaving)
	}
	s.look.wait(leaving)
	return err
}

// Abort ends the requests that Run waits for.
func (s *Server) Abort() { s.abort() }

// Close ends a server that does not run.
func (s *Server) Close() {
	s.abort()
	s.work.Wait()
	_ = s.listen.Close()
	if s.pprof != nil {
		_ = s.pprof.Close()
	}
}

func (s *Server) server(h http.Handler, within time.Duration) *http.Server {
	return &http.Server{
		Handler: s.guard(h), ReadHeaderTimeout: headerWithin, ReadTimeout: requestWithin, WriteTimeout: within, IdleTimeout: idleWithin,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return s.aborted },
	}
}

// guard refuses names that others may have pointed to this machine: a page of another site could
// read under such a name what only this machine may read (DNS rebinding).
func (s *Server) guard(next http.Handler) http.Handler {
	names := console.Options{Hosts: s.c.Hosts}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names.Knows(r) {
			http.Error(w, "nixie does not answer to the name "+r.Host+": ask for localhost or an IP address, "+
				"or start nixie with --host and this name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// routes answers everything but profiles. No request is logged.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	if s.c.Metrics != nil {
		mux.Handle("GET /metrics", s.c.Metrics)
	}
	mux.HandleFunc("GET /livez", s.live)
	mux.HandleFunc("GET /health/live", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /healthz", s.ready)
	mux.HandleFunc("GET /health/ready", s.ready)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.c.Version) })
	mux.HandleFunc("GET /stats.json", s.stats)
	if s.console != nil {
		mux.Handle("/", s.console)
	}
	return mux
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, os.Args[0]) //nolint:gosec // plain text; the arguments may hold passwords
	})
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
