package contest

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLedgerFinds: the ledger finds each error of a library, and none in a correct one.
func TestLedgerFinds(t *testing.T) {
	const n = 300
	all := func(l *Ledger, times int) {
		for range times {
			for i := range n {
				_ = l.Handle(NewTask(i))
			}
		}
	}
	for _, c := range []struct {
		name     string
		scenario Scenario
		handle   func(l *Ledger)
		want     string
	}{
		{"right", Drain, func(l *Ledger) { all(l, 1) }, ""},
		{"right, twice", FailsOnce, func(l *Ledger) { all(l, 2) }, ""},
		{"nothing", Drain, func(*Ledger) {}, "task 0 was handled 0 times, not 1"},
		{"no retry", FailsOnce, func(l *Ledger) { all(l, 1) }, "task 0 was handled 1 times, not 2"},
		{"one twice", Drain, func(l *Ledger) { all(l, 1); _ = l.Handle(NewTask(7)) }, "task 7 was handled 2 times, not 1"},
		{"a stranger", Drain, func(l *Ledger) { all(l, 1); _ = l.Handle(NewTask(n)) }, "1 tasks came that no producer sent"},
		{"another's bytes", Drain, func(l *Ledger) {
			for i := range n {
				_ = l.Handle(Task{I: i, P: NewTask(max(i, 1)).P})
			}
		}, "other bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewLedger(c.scenario, n)
			c.handle(l)
			err := l.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
}

// TestLedgerKeepsOrder: the ledger notices a task that overtakes another of its stream, but not one
// of another stream.
func TestLedgerKeepsOrder(t *testing.T) {
	for swap, want := range map[int]bool{1: true, streams: false} {
		l := NewLedger(Streams, 2*streams)
		l.KeepOrder()
		order := make([]int, 2*streams)
		for i := range order {
			order[i] = i
		}
		order[0], order[swap] = order[swap], order[0]
		for _, i := range order {
			_ = l.Handle(NewTask(i))
		}
		if err := l.Check(); (err == nil) != want {
			t.Errorf("0 and %d swapped: %v", swap, err)
		}
	}
}

// TestLedgerFails: tasks fail as the scenario says, and the ledger is done after the last handling
// of the last task.
func TestLedgerFails(t *testing.T) {
	for _, c := range []struct {
		scenario Scenario
		failures int
	}{{Drain, 0}, {FailsOnce, 300}, {DeadFew, 3}, {DeadAll, 300}} {
		l := NewLedger(c.scenario, 300)
		failures := 0
		for range c.scenario.Runs() {
			for i := range 300 {
				select {
				case <-l.Done():
					t.Fatalf("%s: done before task %d", c.scenario, i)
				default:
				}
				if l.Handle(NewTask(i)) != nil {
					failures++
				}
			}
		}
		select {
		case <-l.Done():
		default:
			t.Errorf("%s is not done", c.scenario)
		}
		if failures != c.failures {
			t.Errorf("%s: %d failures, not %d", c.scenario, failures, c.failures)
		}
	}
}

// TestTasksAreEncoded: a task has the documented size, and decoding returns the same task.
func TestTasksAreEncoded(t *testing.T) {
	for _, i := range []int{0, 7, 4711} {
		body, err := json.Marshal(NewTask(i))
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := Decode(body); err != nil || decoded != NewTask(i) {
			t.Errorf("task %d: %+v %v", i, decoded, err)
		}
		if len(body) < 190 || len(body) > 210 {
			t.Errorf("a task has %d bytes, not about 200", len(body))
		}
	}
	if _, err := Decode([]byte(`{"p":"x"`)); err == nil {
		t.Error("what is no task was decoded")
	}
}
