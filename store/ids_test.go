package store_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func TestIDFormat(t *testing.T) {
	var ids store.IDs
	at := time.UnixMilli(0x0123456789ab)
	id := ids.New(at)
	s := id.String()
	if len(s) != 36 || !strings.HasPrefix(s, "01234567-89ab-7") || !strings.Contains("89ab", s[19:20]) {
		t.Errorf("%s is no UUID of version 7 for its moment", s)
	}
	if (nixie.ID{}).String() != "" || !(nixie.ID{}).IsZero() || id.IsZero() {
		t.Error("the zero ID is not told from others")
	}
	var none nixie.ID
	if err := json.Unmarshal([]byte(`""`), &none); err != nil || !none.IsZero() {
		t.Errorf("the empty text is %v, %v", none, err)
	}
}

func TestIDsGrow(t *testing.T) {
	var ids store.IDs
	now := time.UnixMilli(1_700_000_000_000)
	last := ""
	next := func(now time.Time) {
		t.Helper()
		if id := ids.New(now).String(); id <= last {
			t.Fatalf("%s after %s", id, last)
		} else {
			last = id
		}
	}
	for range 10_000 { // more than the counter within one millisecond holds
		next(now)
	}
	next(now.Add(-time.Hour))
	next(time.Time{})
	next(now.Add(time.Hour))
	if want := "018bd2"; last[:4] != want[:4] {
		t.Errorf("after the clock went on the ID is %s", last)
	}
}

func TestIDsAreUniqueAmongGoroutines(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	var ids store.IDs
	var wg sync.WaitGroup
	made := make([][]nixie.ID, 8)
	for i := range made {
		wg.Go(func() {
			for range 1000 {
				made[i] = append(made[i], ids.New(now))
			}
		})
	}
	wg.Wait()
	seen := map[nixie.ID]bool{}
	for _, some := range made {
		for i, id := range some {
			if seen[id] || i > 0 && id.String() <= some[i-1].String() {
				t.Fatalf("%s was made twice or is not after the one before", id)
			}
			seen[id] = true
		}
	}
}
