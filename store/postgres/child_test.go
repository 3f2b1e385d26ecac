package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store/postgres"
)

// holdLease is for how long the role hold has its messages.
const holdLease = 400 * time.Millisecond

// childProcess is the inside of a process that tests kill and stop.
type childProcess struct {
	child.Voice
	s           *postgres.Store
	url, schema string
}

// play plays a role until the process is killed or the role is over.
func play(role, url, schema string) error {
	s, err := postgres.Open(context.Background(), url, postgres.Options{Schema: schema})
	if err != nil {
		return err
	}
	c := &childProcess{s: s, url: url, schema: schema}
	switch role {
	case "hold":
		err = c.Hold(s, holdLease)
	case "streams":
		err = c.streams()
	default:
		err = fmt.Errorf("no role %q", role)
	}
	return errors.Join(err, s.Close())
}

func startChild(t *testing.T, role, schema string) *child.Process {
	t.Helper()
	return child.Start(t, role, server.URL, schema)
}
