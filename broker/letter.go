package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Bounds of what a letter on a channel says of its failure.
const (
	maxStack = 8 << 10 // bytes of a stack
	maxText  = 4 << 10 // bytes of an error's text
	cutMark  = " … cut"
)

// bury gives letters to whoever keeps them: the office first, which knows a letter
// that it has, and then the channel.
func (s *Source) bury(ctx context.Context, vs []*verdict, now time.Time) {
	if s.c.Office != nil {
		s.toOffice(ctx, vs, now)
	}
	if s.c.Letters == "" {
		return
	}
	var list []Publication
	var sent []*verdict
	for _, v := range vs {
		if v.err == nil {
			list = append(list, s.publication(v))
			sent = append(sent, v)
		}
	}
	for n, err := range s.c.Driver.Publish(ctx, list)() {
		sent[n].unkept(err)
	}
}

// unkept notes that a letter could not be kept. Whatever the reason, its record is
// not done with, and whoever settles it has to try again until somebody has mended
// it.
func (v *verdict) unkept(err error) {
	if err != nil {
		v.err = nixie.Errorf(nixie.CodeUnavailable, "letter of message %s: %w", v.st.Delivery.ID, err)
	}
}

// toOffice takes letters in, in calls that a store accepts.
func (s *Source) toOffice(ctx context.Context, vs []*verdict, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for len(vs) > 0 {
		size, n := 0, 0
		for n < len(vs) && (n == 0 || size+len(vs[n].item.record.Value) <= nixie.MaxBatchBytes) {
			size += len(vs[n].item.record.Value)
			n++
		}
		letters := make([]nixie.Letter, n)
		for k, v := range vs[:n] {
			letters[k] = v.item.letter(v.st, now)
		}
		_, errs := s.c.Office.Bury(ctx, letters, s.c.Actor, "died on "+s.features.System)
		for k, err := range errs {
			vs[k].unkept(err)
		}
		vs = vs[n:]
	}
}

// letter is the letter of an item.
func (i *item) letter(st *nixie.Settlement, now time.Time) nixie.Letter {
	history, dropped := i.with(st)
	m, b := i.delivery.Message, st.Burial
	m.State, m.EndedAt = nixie.Dead, now
	fit(&m)
	id, again := i.letterID()
	if again { // the office has its message, under the ID of the first life
		m.ID = nixie.ID{}
	}
	l := nixie.Letter{
		ID: id, Message: m, History: history, HistoryDropped: dropped,
		Cause: b.Cause, Signature: b.Signature, Fingerprint: b.Fingerprint, Status: b.Status,
		Redrivable: b.Redrivable, NeedsReview: b.NeedsReview, Rule: b.Rule, DiedAt: now, Note: st.Note,
		Operation: OperationOf(i.record.Headers),
	}
	if n := len(l.History); n > 0 {
		newest := &l.History[n-1]
		l.Class, l.Reason, l.LastFailedAt = newest.Class, newest.Reason, newest.FailedAt
		l.FirstFailedAt = l.History[0].FailedAt
		l.Message.LastFailure, l.Message.LastReason = newest.Text, newest.Reason
	}
	if first := moment(i.record.Headers, HeaderFirstFailureAt); !first.IsZero() {
		l.FirstFailedAt = first
	}
	return l
}

// fit cuts what is beyond what an office takes, and says so in headers: whoever wants
// the whole finds it where the message came from.
func fit(m *nixie.Message) {
	left := 0
	if o := m.Origin; o != nil && len(o.Key) > nixie.MaxHeaders {
		cut := *o
		left, cut.Key = len(o.Key)-nixie.MaxHeaders, o.Key[:nixie.MaxHeaders]
		m.Origin = &cut
	}
	if len(m.Body) > nixie.MaxBody {
		left, m.Body = left+len(m.Body)-nixie.MaxBody, m.Body[:nixie.MaxBody]
	}
	m.Headers = bounded(m.Headers)
	if left > 0 {
		m.Headers = append(slices.Clip(m.Headers), nixie.Header{Name: HeaderBytesLeftOut, Value: strconv.Itoa(left)})
	}
}

// marksRoom is what the marks of what is left out need at most.
const marksRoom = len(HeaderLeftOut) + len(HeaderBytesLeftOut) + 2*len("2147483647")

// bounded leaves out headers beyond what an office takes, and says how many.
func bounded(list []nixie.Header) []nixie.Header {
	size := 0
	for _, h := range list {
		size += len(h.Name) + len(h.Value)
	}
	if size <= nixie.MaxHeaders-marksRoom {
		return list
	}
	size = marksRoom
	for n, h := range list {
		if size += len(h.Name) + len(h.Value); size > nixie.MaxHeaders {
			return append(slices.Clone(list[:n]), nixie.Header{Name: HeaderLeftOut, Value: strconv.Itoa(len(list) - n)})
		}
	}
	return list
}

// letterID is that of the letter of an item, which it may have from an earlier life.
func (i *item) letterID() (id nixie.ID, again bool) {
	m := &i.delivery.Message
	if id = redrivenAs(i.record.Headers, m.Redrives); !id.IsZero() {
		return id, true
	}
	return letterID(m), false
}

// redrivenAs is the letter that a record was before its last redrive; zero if its headers
// do not say so as we do.
func redrivenAs(headers []RecordHeader, redrives int) nixie.ID {
	if redrives == 0 { // as most
		return nixie.ID{}
	}
	text, _ := last(headers, HeaderRedriveID)
	name, ok := strings.CutSuffix(text, "-"+strconv.Itoa(redrives))
	id, err := nixie.ParseID(name)
	if !ok || err != nil {
		return nixie.ID{}
	}
	return id
}

// letterID is the same each time a letter is made of a life of a message.
func letterID(m *nixie.Message) nixie.ID {
	var room [32]byte
	life := append(append(room[:0], "letter"...), m.ID[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(life, uint64(m.Generation)))
	id := m.ID // its time
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80 // version 7, variant of RFC 9562
	return id
}

// with is the history with the failures of a settlement: the first one and the
// newest stay.
func (i *item) with(st *nixie.Settlement) (history []nixie.Failure, dropped int) {
	history = slices.Clone(i.failures())
	if i.trouble != nil {
		dropped = i.trouble.dropped
	}
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f == nil {
			continue
		}
		kept := *f
		kept.Err = nil
		history = append(history, kept)
		if len(history) > nixie.MaxHistory {
			history = slices.Delete(history, 1, 2)
			dropped++
		}
	}
	return history, dropped
}

// weight is about how many bytes the history has.
func (i *item) weight() (bytes int64) {
	history := i.failures()
	for n := range history {
		f := &history[n]
		bytes += int64(len(f.Text) + len(f.Stack))
		for _, a := range f.Attachments {
			bytes += int64(len(a.Data))
		}
	}
	return bytes
}

// publication is the letter of a settlement as a record: key, value and the
// headers of its sender as they were, and ours.
func (s *Source) publication(v *verdict) Publication {
	r, m := v.item.record, &v.item.delivery.Message
	f := v.st.Failure
	if v.st.Second != nil {
		f = v.st.Second
	}
	if f == nil {
		f = &nixie.Failure{}
	}
	w := onto(r.Headers, 16, 256)
	w.origin(r)
	w.text(HeaderFailureReason, policy.ChannelReason(f.Class, v.st.Burial.Cause))
	w.failure(f)
	w.counts(m.Attempts, m.Crashes)
	w.time(HeaderFirstFailureAt, firstFailure(v.item, f))
	if len(v.item.failures()) > 0 {
		w.history(v.item.with(v.st))
	}
	if r.Key != nil {
		w.headers = append(w.headers, RecordHeader{HeaderKey, r.Key})
	}
	w.count(HeaderRedriveCount, m.Redrives)
	w.operation(r.Headers)
	id, _ := v.item.letterID()
	w.value(HeaderLetterID, id.Append(w.values))
	return Publication{Channel: ChannelName(s.c.Letters, v.item.source()), Key: r.Key, Value: r.Value, Headers: w.headers}
}

// origin says where a record came from first. One that has waited on a stage knows.
func (w *writer) origin(r *Record) {
	if r.Source == "" {
		w.text(HeaderTopic, r.Channel)
		w.number(HeaderPartition, int64(r.Partition))
		w.number(HeaderOffset, r.Offset)
		w.number(HeaderTimestamp, r.Timestamp.UnixMilli())
		return
	}
	w.text(HeaderTopic, r.Source)
	for _, name := range [...]string{HeaderPartition, HeaderOffset, HeaderTimestamp} {
		text, _ := last(r.Headers, name)
		w.text(name, text)
	}
}

// failure says what went wrong the last time.
func (w *writer) failure(f *nixie.Failure) {
	if f == nil {
		return
	}
	w.text(HeaderReason, string(f.Reason))
	w.text(HeaderFailureClass, string(f.Class))
	w.text(HeaderException, f.Type)
	w.text(HeaderExceptionText, cut(f.Text, maxText))
	if f.Stack != "" {
		sum := sha256.Sum256([]byte(f.Stack))
		w.text(HeaderStackHash, hex.EncodeToString(sum[:8]))
		w.text(HeaderStack, cut(f.Stack, maxStack))
	}
	if f.ExitCode != nil {
		w.number(HeaderErrorCode, int64(*f.ExitCode))
	}
	w.time(HeaderLastFailureAt, f.FailedAt)
	w.text(HeaderFailedNode, f.Node)
}

// counts says how often it was tried.
func (w *writer) counts(attempts, crashes int) {
	w.number(HeaderAttempts, int64(attempts))
	w.count(HeaderCrashes, crashes)
}

// firstFailure is when the first one of all lives was, as far as is known.
func firstFailure(i *item, newest *nixie.Failure) time.Time {
	if first := moment(i.record.Headers, HeaderFirstFailureAt); !first.IsZero() {
		return first
	}
	if history := i.failures(); len(history) > 0 {
		return history[0].FailedAt
	}
	return newest.FailedAt
}

// cut shortens a text to at most n bytes, with a mark.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(cutMark)], "") + cutMark
}
