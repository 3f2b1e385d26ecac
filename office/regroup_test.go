package office_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// older names a group as an earlier build did.
func older(n int) string { return fmt.Sprintf("v2-%016x", n) }

// dieOfOld lets a message die of a text, in a group of an earlier build, and returns the group of
// that text today.
func (w *watched) dieOfOld(group, text string) string {
	w.Helper()
	w.die(text, 1)
	l := w.newest()
	if err := w.st.Features().Regroup(w.Context(), store.Regrouping{Letters: []nixie.Letter{
		{ID: l.ID, Revision: l.Revision, Signature: "older", Fingerprint: group},
	}})[0]; err != nil {
		w.Fatal(err)
	}
	_, today := policy.Signature(&nixie.Failure{Reason: nixie.ReasonTimeout, Text: text})
	return today
}

func (w *watched) newest() nixie.Letter {
	w.Helper()
	list, _, err := w.o.Letters(w.Context(), nixie.Filter{}, store.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		w.Fatal(list, err)
	}
	return list[0]
}

func (w *watched) regroup(r office.RegroupRequest) office.RegroupView {
	w.Helper()
	v, err := w.o.Regroup(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// TestRegroup shows which groups join and part, and repeats.
func TestRegroup(t *testing.T) {
	w := newWatched(t)
	disk := w.dieOfOld(older(1), "the disk is full")
	net := w.dieOfOld(older(1), "the net is down")
	w.dieOfOld(older(2), "the net is down")
	w.dieOfOld(older(3), "no such file")
	w.die(disk, 1)
	w.die("v9-of another decider", 1)
	for _, dry := range []bool{true, false} {
		v := w.regroup(office.RegroupRequest{DryRun: dry})
		if v.DryRun != dry || v.Letters != 4 || v.Regrouped != 4 || v.Kept != 0 || len(v.Skipped) != 0 || v.Before != 3 || v.After != 3 ||
			v.Joined != 2 || v.Parted != 1 || len(v.Moves) != 4 || v.Moves[0].Signature == "older" {
			t.Errorf("dry %v: %+v", dry, v)
		}
	}
	if v := w.regroup(office.RegroupRequest{}); v.Letters != 0 || v.Regrouped != 0 {
		t.Errorf("again: %+v", v)
	}
	groups, _, err := w.st.Count(t.Context(), nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}})
	if sizes := store.Sizes(groups[0]); err != nil || sizes[disk] != 2 || sizes[net] != 2 || len(sizes) != 4 {
		t.Errorf("groups %v, %v", sizes, err)
	}
	entries, _, err := w.st.Audit(t.Context(), store.AuditFilter{Events: []store.Event{store.OnRegroup}}, store.Page{})
	if err != nil || len(entries) != 1 || entries[0].Actor != "ann" {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

// TestRegroupGoesOn ends a regroup of more letters than one step between two steps. The next one
// takes the rest, and each has one entry in the audit.
func TestRegroupGoesOn(t *testing.T) {
	w := newWatched(t)
	const n = 1_200
	for range n {
		w.dieOfOld(older(1), "the disk is full")
	}
	ctx, stop := context.WithCancel(t.Context())
	v, err := w.o.Regroup(ctx, office.RegroupRequest{Progress: func(office.RegroupView) { stop() }})
	if !errors.Is(err, context.Canceled) || v.Regrouped != 500 {
		t.Fatalf("%+v, %v", v, err)
	}
	if v := w.regroup(office.RegroupRequest{Reason: "the rest"}); v.Letters != n-500 || v.Regrouped != n-500 {
		t.Errorf("%+v", v)
	}
	entries, _, err := w.st.Audit(t.Context(), store.AuditFilter{Events: []store.Event{store.OnRegroup}}, store.Page{})
	if err != nil || len(entries) != 2 {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

// TestRegroupIsNoNewCause regroups under a watch. What dies afterwards in groups that older letters
// are in is not new, and an alarm that failed for a group of before is called with its letters.
func TestRegroupIsNoNewCause(t *testing.T) {
	c := &chat{watched: newWatched(t)}
	disk := c.dieOfOld(older(1), "the disk is full")
	got, _ := c.follow(office.WatchRequest{FromNow: true},
		func() { c.regroup(office.RegroupRequest{}) },
		func() { c.die(disk, 1) },
	)
	c.told(got, disk+" grows +1")

	c.down = true
	var net string
	c.watch(office.WatchRequest{}, func() {})
	c.watch(office.WatchRequest{}, func() { net = c.dieOfOld(older(2), "the net is down") })
	c.down = false
	c.regroup(office.RegroupRequest{})
	c.die(disk, 1)
	c.told(c.watch(office.WatchRequest{}), net+" +1")
}
