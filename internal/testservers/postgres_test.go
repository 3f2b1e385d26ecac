//go:build unix

package testservers

import (
	"os"
	"testing"
)

// TestPostgres starts a server, and sees that nothing of it stays.
func TestPostgres(t *testing.T) {
	var p Postgres
	if err := p.start(t.Context(), This()); err != nil {
		p.Reason = err.Error()
	}
	p.Need(t)
	if p.folder == "" {
		t.Skip("the server is given, not ours")
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.folder); !os.IsNotExist(err) {
		t.Fatalf("the folder %s is still there: %v", p.folder, err)
	}
}

// TestPostgresMissing shows what a machine without one says.
func TestPostgresMissing(t *testing.T) {
	var p Postgres
	err := p.start(t.Context(), machine(nil, ""))
	if want := "PostgreSQL: missing, so store/postgres is not tested on it; make test-servers installs it"; err == nil || err.Error() != want {
		t.Fatalf("error is %v, want %s", err, want)
	}
}
