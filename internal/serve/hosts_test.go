package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/office"
)

// asked is a request without the machinery of a client: it may have no host.
func asked(t *testing.T, address, path, head string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was only read
	if _, err := fmt.Fprintf(conn, "GET %s %s\r\nConnection: close\r\n\r\n", path, head); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Every route refuses the names that others may have pointed to this machine, and prints which. The
// profiles and the console answer by the same rule.
func TestHosts(t *testing.T) {
	st, _ := open(t)
	o, err := office.New(office.Config{Store: st, Actor: "tester", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"ops.example", "Metrics.Monitoring.SVC"}
	s, err := serve.New(serve.Config{
		Listen: "127.0.0.1:0", Flag: "--listen", Pprof: "127.0.0.1:0", Hosts: hosts, Clock: time.Now, Version: "v1",
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(st)
	s.Mount(console.Handler(o, console.Options{Hosts: hosts, Run: s.Go}))
	runs(t, s)
	heads := []struct {
		name, head string
		fine       bool
	}{
		{"no host", "HTTP/1.0", true},
		{"an empty host", "HTTP/1.1\r\nHost:", true},
		{"localhost", "HTTP/1.1\r\nHost: LocalHost:8321", true},
		{"loopback", "HTTP/1.1\r\nHost: 127.0.0.1:8321", true},
		{"loopback, IPv6", "HTTP/1.1\r\nHost: [::1]:8321", true},
		{"IP of a pod", "HTTP/1.1\r\nHost: 10.1.2.3:8321", true},
		{"IPv6 of a pod", "HTTP/1.1\r\nHost: [fd00::7]", true},
		{"--host", "HTTP/1.1\r\nHost: ops.example:443", true},
		{"--host, dot", "HTTP/1.1\r\nHost: ops.example.", true},
		{"--host, case", "HTTP/1.1\r\nHost: METRICS.monitoring.svc", true},
		{"foreign", "HTTP/1.1\r\nHost: evil.example", false},
		{"foreign, port", "HTTP/1.1\r\nHost: evil.example:8321", false},
		{"like localhost", "HTTP/1.1\r\nHost: localhost.evil.example", false},
		{"like an IP", "HTTP/1.1\r\nHost: 127.0.0.1.evil.example", false},
		{"below --host", "HTTP/1.1\r\nHost: x.ops.example", false},
		{"a port alone", "HTTP/1.1\r\nHost: :8321", false},
	}
	routes := []string{
		"/metrics", "/stats.json", "/readyz", "/healthz", "/health/ready", "/readyz?verbose", "/livez", "/health/live", "/version",
		"/", "/queues", "http://evil.example/metrics",
		"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2", "/debug/pprof/symbol",
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "route")
	for _, h := range heads {
		fmt.Fprint(table, "\t", h.name)
	}
	for _, route := range routes {
		fmt.Fprint(table, "\n", route)
		address := s.Address()
		if strings.HasPrefix(route, "/debug") {
			address = s.PprofAddress()
		}
		for _, h := range heads {
			want := http.StatusOK
			if !h.fine || strings.HasPrefix(route, "http:") { // which names the host itself
				want = http.StatusMisdirectedRequest
			}
			status, body := asked(t, address, route, h.head)
			fmt.Fprint(table, "\t", status)
			if status != want || want != http.StatusOK && !strings.Contains(body, "start nixie with --host") {
				t.Errorf("%s of %s: %d %s, want %d", route, h.name, status, body, want)
			}
			if strings.HasSuffix(route, "cmdline") && status == http.StatusOK && body != os.Args[0] {
				t.Errorf("the command line has more than the program: %q", body)
			}
		}
	}
	fmt.Fprintln(table)
	_ = table.Flush() // to the log of the test
}

// What is no name of a host is refused at once, and not when a request does not get its answer.
func TestWrongHosts(t *testing.T) {
	for _, name := range []string{"http://ops.example", "ops.example:8321", "*.example", "ops.example/metrics", "", "ops example", "::1",
		"öps.example", "ops.example."} {
		s, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Flag: "--listen", Clock: time.Now, Hosts: []string{name}})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "--host: ") || !strings.Contains(err.Error(), "give one like ops.example") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
