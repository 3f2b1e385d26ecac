package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server that answers until the test is over.
type running struct {
	t    *testing.T
	base string
	stop func() error
}

func start(t *testing.T, st store.Store, c serve.Config) *running {
	t.Helper()
	c.Listen, c.Flag, c.Clock = "127.0.0.1:0", "--listen", time.Now
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Use(st)
	return &running{t, "http://" + s.Address(), runs(t, s)}
}

// runs lets a server answer until stop is called, or the test is over.
func runs(t *testing.T, s *serve.Server) (stop func() error) {
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	over := false
	stop = func() error {
		if over {
			return nil
		}
		over = true
		end()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func (r *running) do(method, path string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(body))
}

func open(t *testing.T) (store.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	st, err := app.OpenStore("sqlite://"+path, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st, path
}

// bury adds letters of a queue.
func bury(t *testing.T, st store.Store, queue string, n int) {
	t.Helper()
	died := time.Now().Add(-time.Minute)
	list := make([]nixie.Letter, n)
	for i := range list {
		list[i] = nixie.Letter{
			Message: nixie.Message{Queue: queue, Attempts: 1, Deliveries: 1}, Cause: nixie.CauseExhausted, Class: nixie.ClassUnknown,
			Reason: nixie.ReasonHandler, Status: nixie.StatusOpen, Signature: "s", Fingerprint: "v1-1", DiedAt: died,
			FirstFailedAt: died, LastFailedAt: died, Rule: "default",
			History: []nixie.Failure{{Generation: 1, Attempt: 1, StartedAt: died, FailedAt: died, Class: nixie.ClassUnknown,
				Reason: nixie.ReasonHandler, Text: "no"}},
		}
	}
	if _, errs := st.Adopt(t.Context(), list, "tester", ""); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
}

// The health routes answer by the state of the store, and letters never make the program unready.
func TestHealth(t *testing.T) {
	refuses := serve.Check{Name: "kafka", Do: func(context.Context) error { return errors.New("no broker answers") }}
	const deep = `{"status":"degraded","dlq":{"name":"orders","depth":100,"threshold":100}}`
	const few = `{"status":"healthy","dlq":{"name":"orders","depth":99,"threshold":100}}`
	for _, tc := range []struct {
		name    string
		letters int
		checks  []serve.Check
		spoil   func(st store.Store, path string) error
		ready   int
		body    string // of the ready routes; it begins so
		verbose string // part of the verbose body
	}{
		{"good", 0, nil, nil, 200, `{"status":"healthy","dlq":{"name":"","depth":0,"threshold":100}}`,
			`"checks":[{"name":"store","ok":true},{"name":"schema","ok":true}]`},
		{"few letters", 99, nil, nil, 200, few, `"ok":true`},
		{"many letters", 100, nil, nil, 200, deep, `"ok":true`},
		{"file moved away", 100, nil, func(_ store.Store, path string) error { return os.Rename(path, path+".away") }, 503,
			`{"status":"unhealthy","checks":[{"name":"store","ok":false,"error":"`, "was deleted while it was in use"},
		{"store closed", 0, nil, func(st store.Store, _ string) error { return st.Close() }, 503, `{"status":"unhealthy"`, "closed"},
		{"connector", 0, []serve.Check{refuses}, nil, 503,
			`{"status":"unhealthy","checks":[{"name":"kafka","ok":false,"error":"no broker answers"}]}`, `{"name":"store","ok":true}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, path := open(t)
			bury(t, st, "orders", tc.letters)
			if tc.spoil != nil {
				if err := tc.spoil(st, path); err != nil {
					t.Fatal(err)
				}
			}
			r := start(t, st, serve.Config{Checks: tc.checks})
			for _, path := range []string{"/livez", "/health/live"} {
				if code, body := r.do("GET", path); code != 200 || body != `{"status":"healthy"}` {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			for _, path := range []string{"/readyz", "/healthz", "/health/ready"} {
				if code, body := r.do("GET", path); code != tc.ready || !strings.HasPrefix(body, tc.body) {
					t.Errorf("%s: %d %s, want %d %s", path, code, body, tc.ready, tc.body)
				}
			}
			if code, body := r.do("GET", "/readyz?verbose"); code != tc.ready || !strings.Contains(body, tc.verbose) {
				t.Errorf("verbose: %d %s, want %s", code, body, tc.verbose)
			}
		})
	}
}

// A scaler reads the work of each queue, and of all.
func TestStats(t *testing.T) {
	st, _ := open(t)
	due := time.Now().Add(-time.Hour)
	for _, m := range []nixie.Message{{Queue: "orders", NotBefore: due}, {Queue: "orders"}, {Queue: "a.b/c"}} {
		if _, err := st.Enqueue(t.Context(), m, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Claim(t.Context(), "a.b/c", nixie.Want{Max: 1}); err != nil {
		t.Fatal(err)
	}
	r := start(t, st, serve.Config{})
	code, body := r.do("GET", "/stats.json")
	type work struct {
		Queued, Running int
		Oldest          float64
	}
	var got struct {
		Queues map[string]work
		All    work
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	orders, other := got.Queues["orders"], got.Queues["a.b/c"]
	if orders.Queued != 4 || orders.Running != 0 || other.Queued != 1 || other.Running != 1 || got.All.Queued != 5 ||
		got.All.Running != 1 ||
		got.All.Oldest < orders.Oldest || other.Oldest > 60 {
		t.Errorf("%s", body)
	}
}

// What is no GET or HEAD, and no route, is refused; so is a head that is too long.
func TestRefused(t *testing.T) {
	st, _ := open(t)
	r := start(t, st, serve.Config{Version: map[string]string{"version": "v1"}})
	for _, tc := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/version", 200}, {"HEAD", "/version", 200}, {"HEAD", "/livez", 200}, {"POST", "/livez", 405},
		{"DELETE", "/stats.json", 405},
		{"PUT", "/readyz", 405}, {"GET", "/", 404}, {"GET", "/metrics", 404}, {"GET", "/debug/pprof/", 404},
		{"GET", "/livez?" + strings.Repeat("x", 32<<10), 431},
	} {
		if code, body := r.do(tc.method, tc.path); code != tc.code {
			t.Errorf("%s %.40s: %d %s, want %d", tc.method, tc.path, code, body, tc.code)
		}
	}
}

// An address that others reach, or that is taken, is refused with the flag that gives it.
func TestAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test is over
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, tc := range []struct{ listen, pprof, want string }{
		{":8321", "", `--listen: ":8321" may be reached from other machines`},
		{"0.0.0.0:8321", "", "may be reached from other machines"},
		{"[::]:8321", "", "may be reached from other machines"},
		{"192.0.2.1:8321", "", "may be reached from other machines"},
		{"example.com:8321", "", "may be reached from other machines"},
		{"8321", "", `--listen: "8321" has no port: give an address such as 127.0.0.1:8321`},
		{"", "", "has no port"},
		{"127.0.0.1:http!", "", "has no port"},
		{"127.0.0.1:70000", "", `port of "127.0.0.1:70000" is out of range: give one from 0 to 65535`},
		{taken.Addr().String(), "", "port " + port + " of 127.0.0.1 is taken: end the program that has it, or give another one by"},
		{"127.0.0.1:0", "0.0.0.0:6060", `--pprof: "0.0.0.0:6060" may be reached`},
		{"127.0.0.1:0", taken.Addr().String(), "or give another one by --pprof"},
		{"127.0.0.1:8321", "127.0.0.1:8321", "--pprof and --listen are both 127.0.0.1:8321"},
	} {
		s, err := serve.New(serve.Config{Listen: tc.listen, Pprof: tc.pprof, Flag: "--listen", Clock: time.Now})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q %q: %v, want %q", tc.listen, tc.pprof, err, tc.want)
		}
	}
}

// Profiles have a listener of their own.
func TestPprof(t *testing.T) {
	s, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Pprof: "127.0.0.1:0", Flag: "--listen", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r := &running{t: t, base: "http://" + s.PprofAddress()}
	if code, _ := r.do("GET", "/debug/pprof/goroutine?debug=1"); code != 200 {
		t.Errorf("profile: %d", code)
	}
	if code, _ := r.do("GET", "/livez"); code != 404 {
		t.Errorf("health next to the profiles: %d", code)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The first stop lets a request end, and Abort ends it.
func TestStops(t *testing.T) {
	for _, abort := range []bool{false, true} {
		t.Run(fmt.Sprint("abort ", abort), func(t *testing.T) {
			asked, answer := make(chan struct{}), make(chan struct{})
			ends := make(chan error, 1)
			s, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Flag: "--listen", Clock: time.Now,
				Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(asked)
					select {
					case <-answer:
						_, _ = io.WriteString(w, "done")
					case <-r.Context().Done():
					}
					ends <- r.Context().Err()
				})})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended, got := make(chan error, 1), make(chan string, 1)
			go func() { ended <- s.Run(ctx) }()
			go func() {
				client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				r, err := client.Get("http://" + s.Address() + "/metrics")
				if err != nil {
					got <- "cut off"
					return
				}
				defer r.Body.Close() //nolint:errcheck // it was only read
				body, _ := io.ReadAll(r.Body)
				got <- string(body)
			}()
			<-asked
			stop()
			if abort {
				s.Abort()
			} else {
				close(answer)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if body := <-got; (body == "done") == abort {
				t.Errorf("the request got %q", body)
			}
			if err := <-ends; (err != nil) != abort {
				t.Errorf("the handler ended with %v", err)
			}
		})
	}
}
