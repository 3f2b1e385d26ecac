package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/office"
)

// A console with --user-header answers to requests with exactly one name; what machines ask for
// needs none.
func TestUserHeader(t *testing.T) {
	st, _ := open(t)
	o, err := office.New(office.Config{Store: st, Actor: "tester", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	by, err := serve.ByHeader("X-Forwarded-User")
	if err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Flag: "--listen", Clock: time.Now, Version: "v1",
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(st)
	s.Mount(console.Handler(o, console.Options{Run: s.Go, Identity: by}))
	runs(t, s)
	const head = "HTTP/1.1\r\nHost: localhost"
	for name, tc := range map[string]struct {
		head   string
		status int
	}{
		"one":                 {"\r\nX-Forwarded-User: ann", 200},
		"in small letters":    {"\r\nx-forwarded-user: ann", 200},
		"of another alphabet": {"\r\nX-Forwarded-User: Ànn Müller", 200},
		"missing":             {"", 403},
		"twice":               {"\r\nX-Forwarded-User: ann\r\nX-Forwarded-User: bob", 403},
		"twice, the same":     {"\r\nX-Forwarded-User: ann\r\nx-forwarded-user: ann", 403},
		"twice, one empty":    {"\r\nX-Forwarded-User: ann\r\nX-Forwarded-User:", 403},
		"empty":               {"\r\nX-Forwarded-User:", 403},
		"spaces":              {"\r\nX-Forwarded-User:    ", 403},
		"10 KB":               {"\r\nX-Forwarded-User: " + strings.Repeat("x", 10<<10), 403},
		"a tab within":        {"\r\nX-Forwarded-User: a\tb", 403},
		"no UTF-8":            {"\r\nX-Forwarded-User: a\xff", 403},
		"a control character": {"\r\nX-Forwarded-User: a\x01b", 400}, // of net/http
		"U+0085":              {"\r\nX-Forwarded-User: a\u0085b", 403},
		"the name of rules":   {"\r\nX-Forwarded-User: nixie", 403},
		"another header":      {"\r\nX-Remote-User: ann", 403},
		"with underscores":    {"\r\nX_Forwarded_User: ann", 403},
		"in a query":          {"\r\nCookie: X-Forwarded-User=ann", 403},
	} {
		if status, body := asked(t, s.Address(), "/queues", head+tc.head); status != tc.status {
			t.Errorf("%s: status %d, want %d\n%s", name, status, tc.status, body)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/health/live", "/health/ready", "/metrics", "/stats.json", "/version"} {
		if status, body := asked(t, s.Address(), path, head); status != http.StatusOK {
			t.Errorf("%s without a name: status %d\n%s", path, status, body)
		}
	}
	for _, wrong := range []string{"", "X Y", "X:Y", "X-Ü", "a\r\nb", "(x)"} {
		if _, err := serve.ByHeader(wrong); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
