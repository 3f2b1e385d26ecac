package app_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
)

func TestDemoHasAllThatItPromises(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	d, err := app.NewDemo(ctx, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := office.New(office.Config{Store: d.Store, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	groups, _, err := o.Groups(ctx, nixie.Filter{})
	if err != nil || len(groups) < 10 || groups[0].Count < 2_000 {
		t.Errorf("%d groups, %v", len(groups), err)
	}
	operations, _, err := o.Operations(ctx, office.Page{})
	if err != nil || len(operations) != 1 || operations[0].Pending == 0 || operations[0].Done == 0 {
		t.Errorf("operations: %+v, %v", operations, err)
	}
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	for {
		stalls, err := o.Stalled(ctx, nil, 0)
		q, wrong := o.Queue(ctx, "payments")
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		if len(stalls) >= 2 && q.Succeeded > 0 { // a paused queue and a blocked stream
			break
		}
		if err := wait(ctx); err != nil {
			t.Fatalf("stalls %+v, queue %+v: %v", stalls, q, err)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// wait lets the demo work for a moment.
func wait(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
