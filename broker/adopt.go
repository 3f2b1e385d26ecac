package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/policy"
)

// lettersSuffixes end the names of channels that take letters. The rest of the name is the channel
// that the letters came from.
var lettersSuffixes = []string{".dlq", ".DLQ", "-dlq", "-DLQ", "-dlt", "-DLT", ".dlt", ".DLT", "_dlq", "_error"}

// SourceOf derives from the name of a channel that takes letters which channel they came from:
// {source}.dlq, {source}-dlt and the like. It returns "" for another name.
func SourceOf(letters string) string {
	for _, suffix := range lettersSuffixes {
		if source, ok := strings.CutSuffix(letters, suffix); ok {
			return source
		}
	}
	return ""
}

// Adopted makes the letter of a record that died elsewhere. Its ID follows from its headers, or
// from its position in the channel, so an office that adopts it twice has it once. Its origin names
// both where it died and where it was found. If queue is empty, the queue is the channel that it
// came from. If a redrive had sent the record, the origin names the letter that it was before. What
// exceeds the limits of an office is cut; the headers [HeaderLeftOut] and
// [HeaderBytesLeftOut] tell how much.
func Adopted(system string, r *Record, queue string) nixie.Letter {
	d, headers := ReadDeath(r.Headers)
	generation := 1 + d.Redrives
	w := r.stand(&d, headers)
	d.fill(r)
	lies, crashes := locationOf(r), headerCount(r.Headers, HeaderCrashes)
	m := nixie.Message{
		ID: r.ID, Queue: cmp.Or(queue, d.Channel, r.Channel), Body: w.value, Headers: inbound(w.sender), State: nixie.Dead,
		Origin: &nixie.Origin{
			System: system, Channel: d.Channel, Partition: d.Partition, Offset: d.Offset,
			MessageID: cmp.Or(r.MessageID, lies), Key: w.key, Timestamp: d.Timestamp,
			Server: r.Server, Database: r.Database, Prefix: r.Prefix, BodyHash: r.BodyHash,
		},
		Attempts: d.Attempts, Deliveries: min(d.Attempts+crashes, maxCount), Crashes: crashes, Redrives: d.Redrives,
		Generation: 1 + d.Redrives,
		EnqueuedAt: d.Timestamp, EndedAt: d.LastFailed,
	}
	if d.Redrives > 0 {
		m.RedrivenAt = headerTime(r.Headers, HeaderRedrivenAt)
	}
	if m.EnqueuedAt.IsZero() { // not known, and not later than this
		m.EnqueuedAt = d.FirstFailed
	}
	if w.value == nil && w.bodyAt == "" {
		m.Headers = append(m.Headers, nixie.Header{Name: HeaderTombstone, Value: "true"})
	}
	cutToLimits(&m)
	if key := string(w.key); key != "" && nixie.CheckName("key", key) == nil {
		m.Key = key
	}
	l := nixie.Letter{
		ID: d.Letter, Message: m, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Redrivable: true, Rule: d.Format,
		FirstFailedAt: d.FirstFailed, LastFailedAt: d.LastFailed, DiedAt: d.LastFailed, Operation: r.OperationOf(),
	}
	if d.Format == jobQueue {
		l.NeedsReview, l.Redrivable = m.Header(HeaderReview) != "", m.Header(HeaderNeverRan) == ""
	}
	w.mark(&l)
	if l.ID.IsZero() {
		l.ID = letterID(m.ID, generation)
		l.Message.Origin.Earlier = redrivenLetter(w.all, d.Redrives)
	} else { // the office may have this letter, with the message that its source received
		l.Message.ID = nixie.ID{}
	}
	f := d.failure(m.Generation)
	l.Class, l.Reason = f.Class, f.Reason
	l.Message.LastFailure, l.Message.LastReason = f.Text, f.Reason
	l.History, l.HistoryDropped = historyOf(r.Headers, f)
	l.Signature, l.Fingerprint = policy.SignatureOf(policy.NamedAfter(l.History), &l.Message)
	return l
}

// locationOf names the position of a record. A channel name that would make it too long is hashed.
func locationOf(r *Record) string {
	location := fmt.Sprintf("%s/%d/%d", r.Channel, r.Partition, r.Offset)
	if len(location) <= nixie.MaxName {
		return location
	}
	hash := nixie.HashBody([]byte(r.Channel))
	return fmt.Sprintf("sha256-%x/%d/%d", hash[:16], r.Partition, r.Offset)
}

// historyOf returns the failures that travelled with a record, and its death as the last one. The
// history holds a short form of the death, which this replaces. Failures that an office would
// refuse are counted as dropped.
func historyOf(headers []RecordHeader, death nixie.Failure) (list []nixie.Failure, dropped int) {
	all, dropped := readHistory(headers)
	known := death.Attempt
	if n := len(all); n > 0 {
		newest := &all[n-1]
		death.StartedAt, death.Took, death.Attempt = newest.StartedAt, newest.Took, max(newest.Attempt, 1)
		death.Step, death.Worker, death.LogLocation = newest.Step, newest.Worker, newest.LogLocation
		all = all[:n-1]
	}
	for i := range all {
		if valid(&all[i]) && len(list) < nixie.MaxHistory-1 {
			list = append(list, all[i])
		} else {
			dropped++
		}
	}
	if len(list) == 0 {
		dropped = 0 // the first known failure counts as the first of all
	}
	if !valid(&death) {
		death.StartedAt, death.Took, death.Attempt, death.Step, death.Worker, death.LogLocation = time.Time{}, 0, known, "", "", ""
	}
	return append(list, death), dropped
}

// valid reports whether an office takes a failure.
func valid(f *nixie.Failure) bool {
	l := nixie.Letter{
		Message: nixie.Message{Queue: "q"}, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Class: f.Class, Reason: f.Reason,
		DiedAt: time.UnixMilli(1), History: []nixie.Failure{*f},
	}
	return check.Letter(&l) == nil
}

// fill adds facts of the record itself where its headers lack them.
func (d *Death) fill(r *Record) {
	at := clampTime(r.Timestamp)
	d.Channel = cmp.Or(d.Channel, SourceOf(r.Channel))
	if d.Timestamp.IsZero() && !r.Timestamp.IsZero() {
		d.Timestamp = at
	}
	if d.LastFailed.IsZero() {
		d.LastFailed = at
	}
	if d.FirstFailed.IsZero() || d.FirstFailed.After(d.LastFailed) {
		d.FirstFailed = d.LastFailed
	}
}

// failure returns the failure that the record died of.
func (d *Death) failure(generation int) nixie.Failure {
	return nixie.Failure{
		Generation: generation, Attempt: d.Attempts, FailedAt: d.LastFailed, Class: d.class(), Reason: d.reason(),
		Type: d.Exception, Text: cmp.Or(d.Text, d.ReasonText), Stack: d.Stack, Context: d.context(),
		Node: d.Node, ExitCode: d.ErrorCode, Group: d.Group, Decision: nixie.Bury,
	}
}

// context returns the other facts of the headers, and the root of the error, which usually explains
// most.
func (d *Death) context() []string {
	list := d.Context
	if n := len(d.Causes); n > 0 {
		list = append(slices.Clone(list[:min(len(list), nixie.MaxContext-1)]), "root cause "+d.Causes[n-1])
	}
	return list[:min(len(list), nixie.MaxContext)]
}

func (d *Death) class() nixie.Class {
	switch {
	case d.Class != "":
		return d.Class
	case strings.HasPrefix(d.ReasonText, "permanent"):
		return nixie.ClassPermanent
	case strings.HasPrefix(d.ReasonText, "transient"):
		return nixie.ClassTransient
	}
	return nixie.ClassUnknown
}

// reason returns our own reason if a header has it, or else the one that the error tells.
func (d *Death) reason() nixie.Reason {
	if d.Reason != "" {
		return d.Reason
	}
	unknown := nixie.ReasonHandler
	if d.Exception == "" {
		unknown = nixie.ReasonUnknown
	}
	return cmp.Or(policy.ForeignReason(d.Exception, cmp.Or(d.Text, d.ReasonText), d.Causes...), unknown)
}
