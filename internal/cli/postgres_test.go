package cli

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// onPostgres returns, for each script, the URL of a database of its own with the owner boss. Roles
// app and web have no rights. SERVER is the address of the server.
func onPostgres(t *testing.T) func(*testscript.Env) (string, error) {
	server := testservers.OwnPostgres(t)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	folder := u.Query().Get("host")
	asRoot(t, server.URL, "create role boss login", "create role app login", "create role web")
	var made atomic.Int64
	return func(env *testscript.Env) (string, error) {
		name := fmt.Sprintf("d%d", made.Add(1))
		asRoot(t, server.URL, "create database "+name+" owner boss")
		env.Setenv("SERVER", folder)
		env.Setenv("AS_APP", "postgres://app@/"+name+"?host="+folder)
		boss := "postgres://boss@/" + name + "?host=" + folder
		env.Setenv("AS_BOSS", boss)
		return boss, nil
	}
}

func asRoot(t *testing.T, url string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background()) //nolint:errcheck // nothing is left to be done on it
	for _, statement := range statements {
		if _, err := c.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// runSQL runs a script on the database of the store, as its owner:
// sql TEXT, where the text - stands for the output of the last command.
func runSQL(ts *testscript.TestScript, _ bool, args []string) {
	c, err := pgx.Connect(context.Background(), ts.Getenv("AS_BOSS"))
	ts.Check(err)
	defer c.Close(context.Background()) //nolint:errcheck // nothing is left to be done on it
	text := args[0]
	if text == "-" {
		text = ts.ReadFile("stdout")
	}
	ts.Check(c.PgConn().Exec(context.Background(), text).Close())
}

// TestStoriesOnPostgres runs the stories of schemas and roles.
func TestStoriesOnPostgres(t *testing.T) {
	scriptsOn(t, filepath.Join("postgres", "*"), onPostgres(t))
}

// TestSameStoriesOnPostgres runs stories of the other stores there: what a person
// sees is the same, to the letter.
func TestSameStoriesOnPostgres(t *testing.T) {
	url := onPostgres(t)
	for _, names := range []string{"R20_*", "R24_*", "R26_*", "R32_*", "R59_an*", "R59_[cp]*", "R59_dlq_[hi]*", "R59_queue_verbs",
		"R59_show", "R59_stats", "R59_stream", "regroup", "[adehilpqw]*"} {
		scriptsOn(t, names, url)
	}
}
