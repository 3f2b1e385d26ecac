package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Limits of the headers that describe a failure.
const (
	maxStack = 8 << 10 // bytes of a stack
	maxText  = 4 << 10 // bytes of an error's text
	cutMark  = " … cut"
)

// buryLetters stores letters: first in the office, which recognises a letter that it has, and then
// on the channel.
func (s *Source) buryLetters(ctx context.Context, vs []*openSettlement, now time.Time) {
	if s.c.Office != nil {
		s.toOffice(ctx, vs, now)
	}
	if s.c.Letters == "" {
		return
	}
	var list []Publication
	var sent []*openSettlement
	for _, v := range vs {
		if v.err == nil {
			list = append(list, s.letterRecord(v))
			sent = append(sent, v)
		}
	}
	for len(list) > 0 {
		var again []Publication
		var of []*openSettlement
		for n, err := range s.c.Driver.Publish(ctx, list)() {
			if nixie.CodeOf(err) == nixie.CodeLimit && s.lessen(sent[n], &list[n]) {
				again, of = append(again, list[n]), append(of, sent[n])
				continue
			}
			sent[n].notTaken(err)
		}
		list, sent = again, of
	}
}

// lessen makes a letter smaller that is too large for its channel. First it loses its history, then
// the stack, and then, if the office has that, its body. It returns false if nothing more can go.
func (s *Source) lessen(v *openSettlement, p *Publication) bool {
	for _, name := range [...]string{HeaderHistory, HeaderStack} {
		before := len(p.Headers)
		p.Headers = slices.DeleteFunc(p.Headers, func(h RecordHeader) bool { return h.Name == name })
		if len(p.Headers) < before {
			return true
		}
	}
	if s.c.Office == nil || len(p.Value) == 0 || len(p.Value) > nixie.MaxBody {
		return false
	}
	o := v.item.delivery.Origin
	lies := locationOf(&Record{Channel: o.Channel, Partition: o.Partition, Offset: o.Offset})
	p.Value, p.Headers = nil, append(p.Headers, RecordHeader{HeaderBodyAt, []byte(lies)})
	return true
}

// letterFailed notes that a letter could not be stored. Its record is not done: the worker settles
// it again until the operator has repaired the store or the channel.
func (v *openSettlement) letterFailed(err error) {
	if err != nil {
		v.err = nixie.Errorf(nixie.CodeUnavailable, "letter of message %s: %w", v.st.Delivery.ID, err)
	}
}

// letterTries limits how often a source gives a letter to a channel that does not take such a one.
// Then its worker ends.
const letterTries = 5

// notTaken notes that a channel could not store a letter.
func (v *openSettlement) notTaken(err error) {
	v.letterFailed(err)
	if code := nixie.CodeOf(err); code != nixie.CodeLimit && code != nixie.CodeInvalid {
		return
	}
	if v.item.refusals++; v.item.refusals >= letterTries {
		o := v.item.delivery.Origin
		where := o.Channel
		if o.Offset >= 0 {
			where = fmt.Sprintf("%s at offset %d in partition %d", where, o.Offset, o.Partition)
		}
		v.err = nixie.Errorf(nixie.CodeLimit, "the record of %s died, and no channel has its letter: %v: %w", where, err, nixie.ErrHeldUp)
	}
}

// toOffice adopts letters, in calls that a store accepts.
func (s *Source) toOffice(ctx context.Context, vs []*openSettlement, now time.Time) {
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
		_, errs := s.c.Office.Adopt(ctx, letters, s.c.Actor, "died on "+s.features.System)
		for k, err := range errs {
			vs[k].letterFailed(err)
		}
		vs = vs[n:]
	}
}

// letter makes the letter of an item.
func (i *item) letter(st *nixie.Settlement, now time.Time) nixie.Letter {
	history, dropped := i.historyWith(st)
	m, b := i.delivery.Message, st.Burial
	m.State, m.EndedAt = nixie.Dead, now
	cutToLimits(&m)
	id, again := i.letterID()
	if again { // the office has its message, under the ID of generation 1
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
	if first := headerTime(i.record.Headers, HeaderFirstFailureAt); !first.IsZero() {
		l.FirstFailedAt = first
	}
	return l
}

// cutToLimits cuts what exceeds the limits of an office, and adds headers that tell how much. The
// whole message stays on its channel.
func cutToLimits(m *nixie.Message) {
	left := 0
	if o := m.Origin; o != nil && len(o.Key) > nixie.MaxHeaders {
		cut := *o
		left, cut.Key = len(o.Key)-nixie.MaxHeaders, o.Key[:nixie.MaxHeaders]
		m.Origin = &cut
	}
	if len(m.Body) > nixie.MaxBody {
		left, m.Body = left+len(m.Body)-nixie.MaxBody, m.Body[:nixie.MaxBody]
	}
	m.Headers = limitHeaders(m.Headers)
	if left > 0 {
		m.Headers = append(slices.Clip(m.Headers), nixie.Header{Name: HeaderBytesLeftOut, Value: strconv.Itoa(left)})
	}
}

// markersSize is the size of the two headers that tell what was cut.
const markersSize = len(HeaderLeftOut) + len(HeaderBytesLeftOut) + 2*len("2147483647")

// limitHeaders drops headers that exceed the limit of an office, and adds a header with their
// number.
func limitHeaders(list []nixie.Header) []nixie.Header {
	size := 0
	for _, h := range list {
		size += len(h.Name) + len(h.Value)
	}
	if size <= nixie.MaxHeaders-markersSize {
		return list
	}
	size = markersSize
	for n, h := range list {
		if size += len(h.Name) + len(h.Value); size > nixie.MaxHeaders {
			return append(slices.Clone(list[:n]), nixie.Header{Name: HeaderLeftOut, Value: strconv.Itoa(len(list) - n)})
		}
	}
	return list
}

// letterID returns the ID of an item's letter. Again tells that an earlier generation of the
// message already has this letter.
func (i *item) letterID() (id nixie.ID, again bool) {
	m := &i.delivery.Message
	if id = redrivenLetter(i.record.Headers, m.Redrives); !id.IsZero() {
		return id, true
	}
	return letterID(m.ID, m.Generation), false
}

// redrivenLetter returns the letter that a record was before its last redrive. It returns zero if
// the record does not have our header of that redrive.
func redrivenLetter(headers []RecordHeader, redrives int) nixie.ID {
	if redrives == 0 { // the common case
		return nixie.ID{}
	}
	text, _ := headerValue(headers, HeaderRedriveID)
	name, ok := strings.CutSuffix(text, "-"+strconv.Itoa(redrives))
	id, err := nixie.ParseID(name)
	if !ok || err != nil {
		return nixie.ID{}
	}
	return id
}

// letterID derives the ID of a letter from that of its message and the generation: each attempt to
// store it has the same one.
func letterID(id nixie.ID, generation int) nixie.ID {
	var buf [32]byte
	text := append(append(buf[:0], "letter"...), id[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(text, uint64(generation)))
	// The ID keeps the time of the message.
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80 // version 7, variant of RFC 9562
	return id
}

// historyWith returns the history, and the failures of a settlement after it. If there are too
// many, the first and the newest ones stay.
func (i *item) historyWith(st *nixie.Settlement) (history []nixie.Failure, dropped int) {
	history, dropped = slices.Clone(i.failures()), i.dropped()
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

// historySize estimates how many bytes the history takes.
func (i *item) historySize() (bytes int64) {
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

// letterRecord makes the record of a letter: key, value and headers of the sender, unchanged, and
// our headers.
func (s *Source) letterRecord(v *openSettlement) Publication {
	r, m := v.item.record, &v.item.delivery.Message
	f := v.st.Failure
	if v.st.Second != nil {
		f = v.st.Second
	}
	if f == nil {
		f = &nixie.Failure{}
	}
	w := newHeaderWriter(r.Headers, 16, 256)
	w.origin(r)
	w.text(HeaderFailureReason, policy.ChannelReason(f.Class, v.st.Burial.Cause))
	w.failure(f)
	w.counts(m.Attempts, m.Crashes)
	w.time(HeaderFirstFailureAt, firstFailure(v.item, f))
	if v.item.retry != nil || f.Step != "" { // no other header names the step
		w.history(v.item.historyWith(v.st))
	}
	if r.Key != nil {
		w.headers = append(w.headers, RecordHeader{HeaderKey, r.Key})
	}
	w.count(HeaderRedriveCount, m.Redrives)
	w.time(HeaderRedrivenAt, m.RedrivenAt)
	w.operation(r.Headers)
	id, _ := v.item.letterID()
	w.value(HeaderLetterID, id.Append(w.values))
	return Publication{Channel: ChannelName(s.c.Letters, v.item.source()), Key: r.Key, Value: r.Value, Headers: w.headers}
}

// origin writes where a record came from first. A record that has waited on a stage has these
// headers already.
func (w *headerWriter) origin(r *Record) {
	if r.Source == "" {
		w.text(HeaderTopic, r.Channel)
		w.number(HeaderPartition, int64(r.Partition))
		w.number(HeaderOffset, r.Offset)
		w.number(HeaderTimestamp, r.Timestamp.UnixMilli())
		return
	}
	w.text(HeaderTopic, r.Source)
	for _, name := range [...]string{HeaderPartition, HeaderOffset, HeaderTimestamp} {
		text, _ := headerValue(r.Headers, name)
		w.text(name, text)
	}
}

// failure writes the last failure.
func (w *headerWriter) failure(f *nixie.Failure) {
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
	w.text(HeaderGroupName, f.Group)
}

// counts writes how many attempts and crashes there were.
func (w *headerWriter) counts(attempts, crashes int) {
	w.number(HeaderAttempts, int64(attempts))
	w.count(HeaderCrashes, crashes)
}

// firstFailure returns when the message failed first, in any generation, as far as that is known.
func firstFailure(i *item, newest *nixie.Failure) time.Time {
	if first := headerTime(i.record.Headers, HeaderFirstFailureAt); !first.IsZero() {
		return first
	}
	if history := i.failures(); len(history) > 0 {
		return history[0].FailedAt
	}
	return newest.FailedAt
}

// cut shortens a text to at most n bytes and marks the cut.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(cutMark)], "") + cutMark
}
