package main

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store/memory"
)

var update = flag.Bool("update", false, "write testdata/output.golden anew")

// TestOrders runs the program and compares its output.
func TestOrders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "output.golden")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("it says\n%s\nwant\n%s", out.String(), want)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestOps asks for a page of the console where the shop mounts it.
func TestOps(t *testing.T) {
	st := memory.New(memory.Options{})
	clerk, err := office.New(office.Config{Store: st, Actor: "clerk"})
	if err != nil {
		t.Fatal(err)
	}
	if err := produce(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	pages := ops(clerk, func(do func(context.Context)) { do(t.Context()) })
	for path, status := range map[string]int{"/ops/": http.StatusOK, "/ops/queues": http.StatusOK, "/queues": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		body := answer.Body.String()
		shows := strings.Contains(body, `<a href="/ops/queue?name=orders">`)
		if answer.Code != status || shows != (status == http.StatusOK) {
			t.Errorf("%s: status %d\n%s", path, answer.Code, body)
		}
	}
}
