package main

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/match/matchtest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

var testServer testservers.Redis

// TestMain makes the test's own program the child that measures.
func TestMain(m *testing.M) {
	if match.IsChild(os.Args[1:]) {
		main()
		return
	}
	os.Exit(testservers.WithRedis(m.Run, &testServer))
}

func TestEverythingOnce(t *testing.T) {
	testServer.Need(t)
	matchtest.Once(t, programme(), func(s contest.Scenario, e *contest.Entrant, r *contest.Result) {
		if r.WAL <= 0 {
			t.Errorf("%s, %s: %+v", s, e.Name, r)
		}
	})
}

func TestSteady(t *testing.T) {
	testServer.Need(t)
	matchtest.Steady(t, programme())
}

// A server with keys of others is refused, and they stay.
func TestOthersKeysStay(t *testing.T) {
	testServer.Need(t)
	t.Setenv("NIXIE_TEST_REDIS", testServer.Addr)
	client := redis.NewClient(&redis.Options{Addr: testServer.Addr})
	t.Cleanup(func() {
		if err := errors.Join(client.Del(context.WithoutCancel(t.Context()), "a").Err(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := client.Set(t.Context(), "a", "b", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), t.TempDir()); err == nil {
		t.Error("it is measured")
	}
	if n := client.Exists(t.Context(), "a").Val(); n != 1 {
		t.Error("the key is gone")
	}
}
