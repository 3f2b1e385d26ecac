package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// lyingAt makes the record that a publication becomes on its channel.
func lyingAt(p Publication, offset int64, source string) *Record {
	return &Record{Channel: p.Channel, Source: source, Offset: offset, ID: [16]byte{1, 15: byte(offset)}, Key: p.Key, Value: p.Value,
		Headers: p.Headers, Timestamp: time.UnixMilli(1_700_000_000_000)}
}

// R30: a record that dies again after a redrive becomes the same letter, on its channel and in an
// office, also after it waited for retries. A header that we did not write does not count.
func TestR30_DiesAgainAsTheSameLetter(t *testing.T) {
	now := time.UnixMilli(1_700_000_100_000)
	s := &Source{c: Config{Letters: DefaultLetters},
		features: Features{Stages: []Stage{{Channel: "{source}.retry.1m", Delay: time.Minute}}}}
	verdictOn := func(r *Record) *openSettlement {
		i := &item{record: r}
		i.fill(&newDelivery{}, &Features{System: "kafka"}, "", now)
		return &openSettlement{item: i, st: &nixie.Settlement{
			Delivery: i.delivery,
			Verb:     nixie.Bury, Failure: &nixie.Failure{Class: nixie.ClassPermanent, Reason: nixie.ReasonHandler, Text: "bad",
				FailedAt: now},
			Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen},
		}}
	}
	idOf := func(p Publication) string { id, _ := headerValue(p.Headers, HeaderLetterID); return id }
	first := s.letterRecord(verdictOn(&Record{Channel: "orders", Offset: 7, ID: [16]byte{9}, Value: []byte("v"), Timestamp: now}))
	back := FromRecord(lyingAt(first, 1, ""))
	redriven := back.Redriven(now)
	redriven.Channel = "orders"

	again := verdictOn(lyingAt(redriven, 8, ""))
	waited := verdictOn(lyingAt(s.retryRecord(again, now), 3, "orders"))
	for name, v := range map[string]*openSettlement{"at once": again, "after a stage": waited} {
		p := s.letterRecord(v)
		if idOf(p) != idOf(first) {
			t.Errorf("%s: letter %s, it was %s", name, idOf(p), idOf(first))
		}
		l, adopted := v.item.letter(v.st, now), Adopted("kafka", lyingAt(p, 2, ""), "")
		for _, l := range []nixie.Letter{l, adopted} {
			if l.ID.String() != idOf(first) || !l.Message.ID.IsZero() || l.Message.Generation != 2 {
				t.Errorf("%s: letter %s of message %s in generation %d", name, l.ID, l.Message.ID, l.Message.Generation)
			}
		}
	}

	for n, h := range redriven.Headers {
		if h.Name == HeaderRedriveID {
			redriven.Headers[n].Value = []byte(strings.TrimSuffix(string(h.Value), "-1") + "-2")
		}
	}
	if p := s.letterRecord(verdictOn(lyingAt(redriven, 8, ""))); idOf(p) == idOf(first) {
		t.Error("the name of another redrive was believed")
	}
}
