package broker

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Stage is a channel on which records wait for a retry, all of them for as long, so
// that they come out in their order. A driver that has stages receives from them as
// well, and hands out nothing of them before it is due.
type Stage struct {
	Channel string // {source} standing for the channel that its records came from first
	Delay   time.Duration
}

// Bounds of stages.
const (
	MaxStages     = 16
	MaxStageDelay = 7 * 24 * time.Hour
)

// stageNames is what a stage is called that has no name: by how long it takes.
const stageNames = sourcePart + ".retry."

// Of is the name of the stage for records of a source.
func (s Stage) Of(source string) string { return ChannelName(s.Channel, source) }

// Due is when a record of the stage may be handed out: at the time that its header
// [HeaderDue] says, else the stage's delay after it was written. Whatever the clocks
// of others say, it is not later than that delay from now.
func (s Stage) Due(header string, written, now time.Time) time.Time {
	due := written.Add(s.Delay)
	if ms, err := strconv.ParseInt(header, 10, 64); err == nil {
		due = time.UnixMilli(ms)
	}
	if latest := now.Add(s.Delay); due.After(latest) {
		return latest
	}
	return due
}

// ParseStages reads stages as a list such as 5s,1m,10m: those are named
// {source}.retry.5s and so on. A name of one's own goes before its delay, as in
// {source}-again=30s.
func ParseStages(text string) ([]Stage, error) {
	var all []Stage
	for part := range strings.SplitSeq(text, ",") {
		name, delay, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, delay = stageNames+name, name
		}
		d, err := time.ParseDuration(delay)
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "stage %q has no delay: give stages as in 5s,1m,10m or {source}-again=30s", part)
		}
		all = append(all, Stage{name, d})
	}
	return all, nil
}

// CheckStages says what is wrong with the stages of so many sources.
func CheckStages(stages []Stage, sources int) error {
	if len(stages) > MaxStages {
		return nixie.Errorf(nixie.CodeInvalid, "%d stages: give %d at most", len(stages), MaxStages)
	}
	for n, s := range stages {
		switch {
		case s.Channel == "":
			return nixie.Errorf(nixie.CodeInvalid, "stage %d has no channel: name it, %s%s for example", n+1, stageNames, s.Delay)
		case s.Delay < time.Millisecond || s.Delay > MaxStageDelay:
			return nixie.Errorf(nixie.CodeInvalid, "stage %s waits for %s: give a time from 1ms to %s", s.Channel, s.Delay, MaxStageDelay)
		case n > 0 && s.Delay <= stages[n-1].Delay:
			return nixie.Errorf(nixie.CodeInvalid, "stage %s waits no longer than the one before it: give the shortest first", s.Channel)
		case slices.ContainsFunc(stages[:n], func(o Stage) bool { return o.Channel == s.Channel }):
			return nixie.Errorf(nixie.CodeInvalid, "stage %s is named twice: its records would not be due in their order", s.Channel)
		case sources > 1 && !strings.Contains(s.Channel, sourcePart):
			return nixie.Errorf(nixie.CodeInvalid, "stage %s would be that of %d channels: put %s into its name", s.Channel, sources, sourcePart)
		}
		if err := CheckChannel("stage", s.Channel); err != nil {
			return err
		}
	}
	return nil
}

// leaves reports whether a retry waits elsewhere than in hand: parked, or on a
// stage. What was only judged runs next, and what is to run at once does.
func (s *Source) leaves(v *verdict) bool {
	switch {
	case v.st.Verb != nixie.Retry || s.c.Order == ProcessStrict && v.item.record.Key != nil:
		return false
	case s.c.Park != nil:
		return true
	}
	return len(s.features.Stages) > 0 && v.st.Delay > 0 && !v.st.Delivery.Abandoned
}

// stage is the first one that takes as long as a retry is to wait, else the last.
func (s *Source) stage(delay time.Duration) Stage {
	all := s.features.Stages
	for _, stage := range all {
		if stage.Delay >= delay {
			return stage
		}
	}
	return all[len(all)-1]
}

// send puts what is to be retried on stages.
func (s *Source) send(ctx context.Context, vs []*verdict, now time.Time) {
	list := make([]Publication, len(vs))
	for n, v := range vs {
		list[n] = s.retry(v, now)
	}
	for n, err := range s.c.Driver.Publish(ctx, list)() {
		v := vs[n]
		switch {
		case nixie.CodeOf(err) == nixie.CodeLimit && s.features.Held:
			v.end = inHand // with what is added to it the record has no room there, ever
		case err != nil:
			v.err = nixie.Errorf(nixie.CodeUnavailable, "retry of message %s: %w", v.st.Delivery.ID, err)
		}
	}
}

// retry is the record of a settlement on its stage: as it was, with what has to be
// known of it when it comes back.
func (s *Source) retry(v *verdict, now time.Time) Publication {
	i, stage := v.item, s.stage(v.st.Delay)
	d := i.delivery
	history, dropped := i.with(v.st)
	w := onto(i.record.Headers, 16, 256)
	w.origin(i.record)
	w.failure(v.st.Failure)
	w.counts(d.Attempts, crashesAfter(v.st))
	if v.st.Failure != nil {
		w.time(HeaderFirstFailureAt, firstFailure(i, v.st.Failure))
	}
	w.history(history, dropped)
	w.count(HeaderRedriveCount, d.Redrives)
	w.operation(i.record.Headers)
	w.letter(i.record.Headers)
	w.count(HeaderDeliveries, d.Deliveries)
	w.steps(d.Steps)
	w.text(HeaderID, d.ID.String())
	w.time(HeaderDue, now.Add(stage.Delay))
	return Publication{Channel: stage.Of(i.source()), Key: i.record.Key, Value: i.record.Value, Headers: w.headers}
}

// source is the channel that a record came from first.
func (i *item) source() string {
	if i.record.Source != "" {
		return i.record.Source
	}
	return i.record.Channel
}

// resume goes on with a record that has waited on a stage.
func (i *item) resume(headers []RecordHeader, now time.Time) {
	d := i.delivery
	d.Origin.Channel, d.Origin.Partition, d.Origin.Offset = i.record.Source, int32(count(headers, HeaderPartition)), number(headers, HeaderOffset)
	if at := moment(headers, HeaderTimestamp); !at.IsZero() && !at.After(now) {
		d.Origin.Timestamp, d.EnqueuedAt = at, at
	}
	text, _ := last(headers, HeaderID)
	if id, err := nixie.ParseID(text); err == nil && !id.IsZero() {
		d.ID = id
	}
	d.Attempts = min(d.Attempts+count(headers, HeaderAttempts), maxCount)
	d.Deliveries = min(d.Deliveries+count(headers, HeaderDeliveries), maxCount)
	steps, _ := last(headers, HeaderSteps)
	d.Steps = readSteps(steps)
	i.judged = i.record.Crashes == 0 // those before were
	history, dropped := readHistory(headers)
	i.remember(history, dropped)
	if n := len(history); n > 0 {
		d.LastFailure, d.LastReason = history[n-1].Text, history[n-1].Reason
	}
}

// crashes are the holders that vanished with a record, also before it waited on a stage.
func crashes(r *Record) int {
	if r.Source == "" {
		return r.Crashes
	}
	return min(r.Crashes+count(r.Headers, HeaderCrashes), maxCount)
}
