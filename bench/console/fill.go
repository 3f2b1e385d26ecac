package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// Shape of the store.
const (
	queues  = 50
	inOne   = 2000           // letters in one call
	history = 72 * time.Hour // in which they died
)

// reasons are those of the groups, by number.
var reasons = []nixie.Reason{
	nixie.ReasonTimeout, nixie.ReasonTransportUnavailable, nixie.ReasonValidation, nixie.ReasonThrottled, nixie.ReasonAuth,
	nixie.ReasonHandler,
}

// fill adds letters, messages in each stage and a stream that is blocked.
func (j *job) fill(ctx context.Context, st store.Store) error {
	now := time.Now()
	for at := 0; at < j.letters; at += inOne {
		list := make([]nixie.Letter, min(inOne, j.letters-at))
		for i := range list {
			list[i] = j.letter(at+i, now)
		}
		_, errs := st.Adopt(ctx, list, "bench", "")
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	if err := j.work(ctx, st); err != nil {
		return err
	}
	clerk, err := office.New(office.Config{Store: st, Actor: "bench"})
	if err != nil {
		return err
	}
	strict, err := office.ParseSettings([]string{"order=strict"})
	if err != nil {
		return err
	}
	if _, err := clerk.Set(ctx, "ordered", strict, "a bench"); err != nil {
		return err
	}
	var waiting []nixie.Message
	for i := range 1000 {
		waiting = append(waiting, nixie.Message{Queue: queue(i), Type: "ship", Delay: time.Duration(i%2) * time.Hour},
			nixie.Message{Queue: "ordered", Type: "ship", Stream: fmt.Sprintf("customer-%d", i%100)})
	}
	if _, err = st.Enqueue(ctx, waiting...); err != nil {
		return err
	}
	return j.fail(ctx, st, clerk)
}

// left is the number of messages of a queue that are not worked on. None of those of the first
// queue are: they are older than all others.
const left = 100

// work enqueues messages, the newest of which wait, and lets the older ones succeed.
func (j *job) work(ctx context.Context, st store.Store) error {
	for at := 0; at < j.messages; at += inOne {
		list := make([]nixie.Message, min(inOne, j.messages-at))
		for i := range list {
			list[i] = nixie.Message{Queue: queue((at + i) / max(j.messages/queues, 1)), Type: "ship", Key: fmt.Sprintf("message-%d", at+i),
				Body: fmt.Appendf(nil, `{"message": %d}`, at+i)}
		}
		if _, err := st.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	for n := 1; n < queues; n++ {
		source := store.NewSource(st, queue(n))
		for todo := j.messages/queues - left; todo > 0; {
			list, err := source.Receive(ctx, nixie.Want{Max: min(todo, inOne), Lease: time.Minute})
			if err != nil {
				return err
			}
			settlements := make([]nixie.Settlement, len(list))
			for i, d := range list {
				settlements[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			}
			if err := errors.Join(source.Settle(ctx, settlements)...); err != nil || len(list) == 0 {
				return err
			}
			todo -= len(list)
		}
	}
	return nil
}

// fail lets heads of streams die, others wait for a retry, and begins an operation.
func (j *job) fail(ctx context.Context, st store.Store, clerk *office.Office) error {
	source := store.NewSource(st, "ordered")
	list, err := source.Receive(ctx, nixie.Want{Max: 100, Lease: time.Minute})
	if err != nil {
		return err
	}
	var settlements []nixie.Settlement
	for i, d := range list {
		now := time.Now()
		f := &nixie.Failure{Generation: 1, Attempt: 1, StartedAt: now, FailedAt: now, Class: nixie.ClassTransient,
			Reason: nixie.ReasonTimeout, Text: "no answer", Decision: nixie.Retry}
		s := nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Hour, Failure: f}
		if i%2 == 0 {
			f.Decision, s.Verb, s.Delay = nixie.Bury, nixie.Bury, 0
			s.Burial = &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "timeout: no answer",
				Fingerprint: "v2-answer", Redrivable: true}
		}
		settlements = append(settlements, s)
	}
	if err := errors.Join(source.Settle(ctx, settlements)...); err != nil {
		return err
	}
	filter := nixie.Filter{Fingerprints: []string{fingerprint(1)}}
	work := &office.OperationRequest{Event: office.OnRedrive, Filter: filter, Text: office.FilterText(filter), Reason: "a bench", Max: 10}
	op, err := clerk.Begin(ctx, work)
	if err == nil {
		_, err = clerk.Run(ctx, op.Operation, work)
	}
	return err
}

func queue(group int) string { return fmt.Sprintf("queue-%02d", group%queues) }

func fingerprint(group int) string { return fmt.Sprintf("v2-%012x", group) }

func (j *job) letter(i int, now time.Time) nixie.Letter {
	group := i % j.groups
	died := now.Add(-history + time.Duration(i)*(history/time.Duration(j.letters)))
	reason, text := reasons[group%len(reasons)], fmt.Sprintf("step %d of order %d: no answer", group, i)
	f := nixie.Failure{
		Generation: 1, Attempt: 1, StartedAt: died.Add(-2 * time.Minute), FailedAt: died.Add(-time.Minute), Class: nixie.ClassTransient,
		Reason: reason, Type: "*net.OpError", Text: text, Worker: "worker-1", Node: "host-a", Decision: nixie.Retry, NextAt: died,
	}
	last := f
	last.Attempt, last.StartedAt, last.FailedAt, last.Decision, last.NextAt = 2, died, died, nixie.Bury, time.Time{}
	return nixie.Letter{
		Message: nixie.Message{
			Queue: queue(group), Type: "ship", Key: fmt.Sprintf("order-%d", i),
			Body:       fmt.Appendf(nil, `{"order": %d, "step": %d}`, i, group),
			Headers:    []nixie.Header{{Name: "tenant", Value: "north"}},
			EnqueuedAt: died.Add(-3 * time.Minute), FirstReceivedAt: f.StartedAt, Attempts: 2, Deliveries: 2, Generation: 1,
		},
		History: []nixie.Failure{f, last}, Cause: nixie.CauseExhausted, Class: f.Class, Reason: reason,
		Signature: fmt.Sprintf("%s: step %d of order <n>: no answer", reason, group), Fingerprint: fingerprint(group),
		Status: nixie.StatusOpen, Redrivable: true, FirstFailedAt: f.FailedAt, LastFailedAt: died, DiedAt: died,
	}
}
