package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

var server testservers.Postgres

func TestMain(m *testing.M) { os.Exit(testservers.WithPostgres(m.Run, &server)) }

// TestService takes in three orders. One has no address: a repair and a redrive ship it.
func TestService(t *testing.T) {
	server.Need(t)
	schema, err := postgres.NewSchema(server.URL, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Up(t.Context(), 0, store.Grants{}); err != nil { // nixie migrate up
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"Ada, Main St 1", "", "Grace, High St 2"}, "3 orders, 2 shipped, 1 open"},
		{nil, "3 orders, 2 shipped, 1 open"},
		{[]string{"repair", "2", "Bob, Low St 3"}, "3 orders, 3 shipped, 0 open"},
	} {
		if err := run(t.Context(), server.URL, c.args); err != nil {
			t.Fatal(err)
		}
		if got := state(t); got != c.want {
			t.Errorf("after %q: %s, want %s", c.args, got, c.want)
		}
	}
}

// state tells what there is.
func state(t *testing.T) (told string) {
	t.Helper()
	err := serve(t.Context(), server.URL, func(s *shop) error {
		var orders, shipped int
		if err := s.pool.QueryRow(t.Context(), "select count(*), count(shipped) from orders").Scan(&orders, &shipped); err != nil {
			return err
		}
		open, _, err := s.st.Letters(t.Context(), nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, store.Page{})
		told = fmt.Sprintf("%d orders, %d shipped, %d open", orders, shipped, len(open))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return told
}
