package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// lettersSuffixes end the names of channels that take letters; what is before is
// the channel that these came from.
var lettersSuffixes = []string{".dlq", ".DLQ", "-dlq", "-DLQ", "-dlt", "-DLT", ".dlt", ".DLT", "_dlq", "_error"}

// SourceOf is the channel whose letters a channel takes, by its name: {source}.dlq,
// {source}-dlt and the like. Empty means that the name says nothing.
func SourceOf(letters string) string {
	for _, suffix := range lettersSuffixes {
		if source, ok := strings.CutSuffix(letters, suffix); ok {
			return source
		}
	}
	return ""
}

// Adopted is the letter of a record that died elsewhere. Its ID follows from what
// its headers say, or from where it lies, and its origin says both where it died and
// where it lies: taken in twice it is there once. An empty queue means the channel
// that it came from. What is beyond the bounds of an office is cut, and headers say so:
// [HeaderLeftOut], [HeaderBytesLeftOut].
func Adopted(system string, r *Record, queue string) nixie.Letter {
	d, headers := ReadDeath(r.Headers)
	d.fill(r)
	lies := placeOf(r)
	m := nixie.Message{
		ID: r.ID, Queue: cmp.Or(queue, d.Channel, r.Channel), Body: r.Value, Headers: inbound(headers), State: nixie.Dead,
		Origin: &nixie.Origin{
			System: system, Channel: d.Channel, Partition: d.Partition, Offset: d.Offset,
			MessageID: cmp.Or(r.MessageID, lies), Key: r.Key, Timestamp: d.Timestamp,
		},
		Attempts: d.Attempts, Deliveries: d.Attempts, Crashes: min(count(r.Headers, HeaderCrashes), d.Attempts), Redrives: d.Redrives, Generation: 1 + d.Redrives,
		EnqueuedAt: d.Timestamp, EndedAt: d.LastFailed,
	}
	if r.Value == nil {
		m.Headers = append(m.Headers, nixie.Header{Name: HeaderTombstone, Value: "true"})
	}
	fit(&m)
	if key := string(r.Key); key != "" && nixie.CheckName("key", key) == nil {
		m.Key = key
	}
	l := nixie.Letter{
		ID: d.Letter, Message: m, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Redrivable: true, Rule: d.Format,
		FirstFailedAt: d.FirstFailed, LastFailedAt: d.LastFailed, DiedAt: d.LastFailed, Operation: OperationOf(r.Headers),
	}
	switch {
	case l.ID.IsZero():
		l.ID = letterID(&m)
	case d.Redrives > 0: // the office may have its message, under the ID of the first life
		l.Message.ID = nixie.ID{}
	}
	f := d.failure(m.Generation)
	l.Class, l.Reason = f.Class, f.Reason
	l.Message.LastFailure, l.Message.LastReason = f.Text, f.Reason
	l.Signature, l.Fingerprint = policy.Signature(&f)
	l.History, l.HistoryDropped = past(r.Headers, f)
	return l
}

// placeOf is where a record lies, as a name: with the hash of a channel whose own would be
// too long.
func placeOf(r *Record) string {
	place := fmt.Sprintf("%s/%d/%d", r.Channel, r.Partition, r.Offset)
	if len(place) <= nixie.MaxName {
		return place
	}
	hash := nixie.HashBody([]byte(r.Channel))
	return fmt.Sprintf("sha256-%x/%d/%d", hash[:16], r.Partition, r.Offset)
}

// past is the history that travelled with a record, and then how it died: of that
// the history has the short form, if it has it. What cannot be kept is counted.
func past(headers []RecordHeader, death nixie.Failure) (list []nixie.Failure, dropped int) {
	all, dropped := readHistory(headers)
	known := death.Attempt
	if n := len(all); n > 0 {
		newest := &all[n-1]
		death.StartedAt, death.Took, death.Attempt = newest.StartedAt, newest.Took, max(newest.Attempt, 1)
		death.Step, death.Worker, death.LogLocation = newest.Step, newest.Worker, newest.LogLocation
		all = all[:n-1]
	}
	for i := range all {
		if sound(&all[i]) && len(list) < nixie.MaxHistory-1 {
			list = append(list, all[i])
		} else {
			dropped++
		}
	}
	if len(list) == 0 {
		dropped = 0 // the first failure is never dropped, and this is the first that is known
	}
	if !sound(&death) {
		death.StartedAt, death.Took, death.Attempt, death.Step, death.Worker, death.LogLocation = time.Time{}, 0, known, "", "", ""
	}
	return append(list, death), dropped
}

// sound reports whether an office takes a failure.
func sound(f *nixie.Failure) bool {
	l := nixie.Letter{
		Message: nixie.Message{Queue: "q"}, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Class: f.Class, Reason: f.Reason,
		DiedAt: time.UnixMilli(1), History: []nixie.Failure{*f},
	}
	return l.Check() == nil
}

// fill adds what the record itself says where its headers say nothing.
func (d *Death) fill(r *Record) {
	at := sane(r.Timestamp)
	d.Channel = cmp.Or(d.Channel, SourceOf(r.Channel))
	if d.Timestamp.IsZero() {
		d.Timestamp = at
	}
	if d.LastFailed.IsZero() {
		d.LastFailed = at
	}
	if d.FirstFailed.IsZero() || d.FirstFailed.After(d.LastFailed) {
		d.FirstFailed = d.LastFailed
	}
}

// failure is the last one before the death.
func (d *Death) failure(generation int) nixie.Failure {
	return nixie.Failure{
		Generation: generation, Attempt: d.Attempts, FailedAt: d.LastFailed, Class: d.class(), Reason: d.reason(),
		Type: d.Exception, Text: cmp.Or(d.Text, d.ReasonText), Stack: d.Stack, Context: d.context(),
		Node: d.Node, ExitCode: d.ErrorCode, Decision: nixie.Bury,
	}
}

// context is what else is known, with the root of the error, which says most.
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

// exceptions are parts of the names of errors that say what went wrong.
var exceptions = []struct {
	part   string
	reason nixie.Reason
}{
	{"timeout", nixie.ReasonTimeout}, {"serialization", nixie.ReasonSerialization}, {"conversion", nixie.ReasonSerialization},
	{"dataexception", nixie.ReasonSerialization}, {"json", nixie.ReasonSerialization}, {"validation", nixie.ReasonValidation},
	{"authorization", nixie.ReasonAuth}, {"authentication", nixie.ReasonAuth}, {"connect", nixie.ReasonTransportUnavailable},
	{"unknownhost", nixie.ReasonTransportUnavailable}, {"socketexception", nixie.ReasonTransportUnavailable},
}

// reason is ours if it is said, else what the name of the error tells, or else the
// names of those that caused it, from the root outwards.
func (d *Death) reason() nixie.Reason {
	if d.Reason != "" {
		return d.Reason
	}
	if r := reasonOf(d.Exception); r != "" {
		return r
	}
	for _, caused := range slices.Backward(d.Causes) {
		name, _, _ := strings.Cut(caused, ":")
		if r := reasonOf(name); r != "" {
			return r
		}
	}
	if d.Exception == "" {
		return nixie.ReasonUnknown
	}
	return nixie.ReasonHandler
}

// reasonOf is what the name of an error tells; nothing if it tells nothing.
func reasonOf(exception string) nixie.Reason {
	if exception == "org.apache.kafka.connect.errors.ConnectException" {
		return "" // any error of Kafka Connect, and not of a connection
	}
	name := strings.ToLower(exception[strings.LastIndexAny(exception, ".$")+1:])
	for _, e := range exceptions {
		if strings.Contains(name, e.part) {
			return e.reason
		}
	}
	return ""
}
