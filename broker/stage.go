package broker

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// Stage is a channel where records wait for a retry. All of them wait for the same time, so they
// become due in their order. A driver with stages hands out their records too, and none before it
// is due: it receives from them, or its broker moves each to the channel that it came from first.
type Stage struct {
	Channel string // {source} stands for the channel that the record came from first
	Delay   time.Duration
}

// Limits of stages.
const (
	MaxStages     = 16
	MaxStageDelay = 7 * 24 * time.Hour
)

// stagePrefix begins the name of a stage that the user did not name; its delay is the rest.
const stagePrefix = sourcePart + ".retry."

// Of returns the name of the stage for records of a source.
func (s Stage) Of(source string) string { return ChannelName(s.Channel, source) }

// Due returns when a record of the stage may be handed out. Its header [HeaderDue] names the time;
// without that header it is the delay after the record was written. If the clocks of other machines
// are wrong, the record waits no longer than the delay from now.
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

// ParseStages reads a list of stages such as 5s,1m,10m, which are named {source}.retry.5s and so
// on. Another name goes before the delay, as in {source}-again=30s.
func ParseStages(text string) ([]Stage, error) {
	var all []Stage
	for part := range strings.SplitSeq(text, ",") {
		name, delay, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, delay = stagePrefix+name, name
		}
		d, err := filter.ParseDuration(delay)
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "stage %q has no delay: give stages as in 5s,1m,10m or {source}-again=30s", part)
		}
		all = append(all, Stage{name, d})
	}
	return all, nil
}

// CheckStages refuses stages that the given number of sources cannot use.
func CheckStages(stages []Stage, sources int) error {
	if len(stages) > MaxStages {
		return nixie.Errorf(nixie.CodeInvalid, "%d stages: give %d at most", len(stages), MaxStages)
	}
	for n, s := range stages {
		switch {
		case s.Channel == "":
			return nixie.Errorf(nixie.CodeInvalid, "stage %d has no channel: name it, %s%s for example", n+1, stagePrefix, s.Delay)
		case s.Delay < time.Millisecond || s.Delay > MaxStageDelay:
			return nixie.Errorf(nixie.CodeInvalid, "stage %s waits for %s: give a time from 1ms to %s", s.Channel, s.Delay, MaxStageDelay)
		case n > 0 && s.Delay <= stages[n-1].Delay:
			return nixie.Errorf(nixie.CodeInvalid, "stage %s waits no longer than the one before it: give the shortest first", s.Channel)
		case slices.ContainsFunc(stages[:n], func(o Stage) bool { return o.Channel == s.Channel }):
			return nixie.Errorf(nixie.CodeInvalid, "stage %s is named twice: its records would not be due in their order", s.Channel)
		case sources > 1 && !strings.Contains(s.Channel, sourcePart):
			return nixie.Errorf(nixie.CodeInvalid, "stage %s would be that of %d channels: put %s into its name", s.Channel, sources,
				sourcePart)
		}
		if err := CheckChannel("stage", s.Channel); err != nil {
			return err
		}
	}
	return nil
}

// waitsElsewhere reports whether a retry leaves the hand: it is parked, or waits on a stage. A
// record that a worker only judged stays and runs next, as does a retry without a delay.
func (s *Source) waitsElsewhere(v *openSettlement) bool {
	switch {
	case !s.leaves(v.st) || s.c.Order == ProcessStrict && v.item.record.Key != nil:
		return false
	case s.c.Park != nil:
		return true
	}
	return s.features.delays() && v.st.Delay > 0 && !v.st.Delivery.Abandoned
}

// leaves reports whether a settlement is one after which a record may wait elsewhere: a retry, or a
// release of a type that this worker does not know, if the broker does not take the record back.
func (s *Source) leaves(st *nixie.Settlement) bool {
	return st.Verb == nixie.Retry || st.Waiver == nixie.WaiveUnknown && !s.features.Nack
}

// delays reports whether channels of the broker take retries that wait.
func (f *Features) delays() bool { return len(f.Stages) > 0 || f.MaxPublishDelay > 0 }

// stage returns the first stage that is as long as the delay, or the last one. A channel that takes
// delayed records is its own stage.
func (s *Source) stage(i *item, delay time.Duration) Stage {
	all := s.features.Stages
	if len(all) == 0 {
		return Stage{i.record.Channel, min(delay, s.features.MaxPublishDelay)}
	}
	for _, stage := range all {
		if stage.Delay >= delay {
			return stage
		}
	}
	return all[len(all)-1]
}

// publishRetries puts retries on their stages.
func (s *Source) publishRetries(ctx context.Context, vs []*openSettlement, now time.Time) {
	list := make([]Publication, len(vs))
	for n, v := range vs {
		list[n] = s.retryRecord(v, now)
	}
	for n, err := range s.c.Driver.Publish(ctx, list)() {
		v := vs[n]
		switch code := nixie.CodeOf(err); {
		case code == nixie.CodeLimit || code == nixie.CodeInvalid:
			v.then = toKeep // the stage will never take it: with our headers it is too large, or not of its kind
		case err != nil:
			v.err = nixie.Errorf(nixie.CodeUnavailable, "retry of message %s: %w", v.st.Delivery.ID, err)
		}
	}
}

// retryRecord makes the record that waits on a stage: the original one, and headers from which
// resumeFromStage goes on.
func (s *Source) retryRecord(v *openSettlement, now time.Time) Publication {
	i, stage := v.item, s.stage(v.item, v.st.Delay)
	d := i.delivery
	history, dropped := i.historyWith(v.st)
	patience, attempts := i.after(v.st, now)
	w := newHeaderWriter(i.record.Headers, 17, 256)
	w.origin(i.record)
	w.failure(v.st.Failure)
	w.counts(attempts, crashesAfter(v.st))
	w.patience(patience)
	if v.st.Failure != nil {
		w.time(HeaderFirstFailureAt, firstFailure(i, v.st.Failure))
	}
	w.history(history, dropped)
	w.count(HeaderRedriveCount, d.Redrives)
	w.time(HeaderRedrivenAt, d.RedrivenAt)
	w.operation(i.record.Headers)
	w.letter(i.record.Headers)
	w.count(HeaderDeliveries, d.Deliveries)
	w.steps(d.Steps)
	w.text(HeaderID, d.ID.String())
	w.time(HeaderDue, now.Add(stage.Delay))
	p := Publication{Channel: stage.Of(i.source()), Key: i.record.Key, Value: i.record.Value, Headers: w.headers,
		Partition: &i.record.Partition}
	if s.features.MaxPublishDelay > 0 && len(s.features.Stages) == 0 {
		p.Delay = stage.Delay
	}
	return p
}

// source returns the channel that the record came from first.
func (i *item) source() string {
	if i.record.Source != "" {
		return i.record.Source
	}
	return i.record.Channel
}

// resumeFromStage continues a record that has waited on a stage: it restores origin, ID, counts,
// steps and failures from its headers.
func (i *item) resumeFromStage(headers []RecordHeader, now time.Time) {
	d := i.delivery
	d.Origin.Channel, d.Origin.Partition, d.Origin.Offset = i.record.Source, int32(headerCount(headers, HeaderPartition)),
		headerNumber(headers, HeaderOffset)
	if at := headerTime(headers, HeaderTimestamp); !at.IsZero() && !at.After(now) {
		d.Origin.Timestamp, d.EnqueuedAt = at, at
	}
	text, _ := headerValue(headers, HeaderID)
	if id, err := nixie.ParseID(text); err == nil && !id.IsZero() {
		d.ID = id
	}
	d.Attempts = min(d.Attempts+headerCount(headers, HeaderAttempts), maxCount)
	d.Deliveries = min(d.Deliveries+headerCount(headers, HeaderDeliveries), maxCount)
	if d.Patience == (nixie.Patience{}) {
		text, _ := headerValue(headers, HeaderPatience)
		d.Patience = headerPatience(text, d.Deliveries, now)
	}
	steps, _ := headerValue(headers, HeaderSteps)
	d.Steps = readSteps(steps)
	i.judged = i.record.Crashes == 0 // a worker judged the earlier crashes
	history, dropped := readHistory(headers)
	i.remember(history, dropped+i.dropped())
	if n := len(history); n > 0 {
		d.LastFailure, d.LastReason = history[n-1].Text, history[n-1].Reason
	}
}

// totalCrashes counts the holders that vanished with a record, also before it waited on a stage.
func totalCrashes(r *Record) int {
	if r.Source == "" {
		return r.Crashes
	}
	return min(r.Crashes+headerCount(r.Headers, HeaderCrashes), maxCount)
}
