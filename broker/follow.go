package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
)

// follow stores the messages that follow settlements. Each may be sent more than once, with the
// same dedupe key: when this process ends before the record is acknowledged, another runs it again.
func (s *Source) follow(ctx context.Context, all []*openSettlement) {
	var list []Publication
	var of []*openSettlement
	for _, v := range all {
		if v.err != nil || len(v.st.Then) == 0 {
			continue
		}
		if v.err = nixie.CheckThenOfBroker(v.st.Then); v.err != nil {
			continue
		}
		if s.c.Then != nil {
			_, v.err = s.c.Then.Enqueue(ctx, keyed(v.st)...)
			continue
		}
		records, err := s.followers(v.st)
		if v.err = err; err != nil {
			continue
		}
		for _, r := range records {
			list, of = append(list, r), append(of, v)
		}
	}
	if len(list) == 0 {
		return
	}
	for n, err := range s.c.Driver.Publish(ctx, list)() {
		if err != nil && of[n].err == nil {
			of[n].err = refused(of[n].st, list[n].Channel, err)
		}
	}
}

// keyed returns the messages that follow a settlement. Each has a dedupe key of its own, made of
// the ID and generation of the settled message, and its index among those to the same queue. So a
// record that comes twice is not followed up twice, whichever of its attempts ended it. The key of
// a retry also has the attempt.
func keyed(st *nixie.Settlement) []nixie.Message {
	d, list := st.Delivery, slices.Clone(st.Then)
	cause := fmt.Sprintf("then:%s:%d", d.ID, d.Generation)
	if st.Verb == nixie.Retry {
		cause = fmt.Sprintf("%s.%d", cause, d.Attempts)
	}
	before := map[string]int{} // by queue
	for i := range list {
		m := &list[i]
		m.DedupeKey = fmt.Sprintf("%s:%d", cause, before[m.Queue])
		before[m.Queue]++
	}
	return list
}

// refused is the error of a settlement with a message that a channel does not take.
func refused(st *nixie.Settlement, channel string, err error) error {
	return &nixie.Error{
		Code: nixie.CodeOf(err), Err: err, Queue: channel,
		Text: fmt.Sprintf("message to %s that follows %s: %s", channel, st.Delivery.ID, err),
	}
}

// followers makes the records of the messages that follow a settlement.
func (s *Source) followers(st *nixie.Settlement) ([]Publication, error) {
	var list []Publication
	for _, m := range keyed(st) {
		if err := s.publishable(&m); err != nil {
			return nil, refused(st, m.Queue, err)
		}
		r := Publication{Channel: m.Queue, Value: m.Body, Headers: outbound(m.Headers), Delay: m.Delay, Once: m.DedupeKey}
		if m.Key != "" {
			r.Key = []byte(m.Key)
		}
		r.Headers = append(r.Headers, RecordHeader{Name: HeaderDedupeKey, Value: []byte(m.DedupeKey)})
		if m.Type != "" {
			r.Headers = append(r.Headers, RecordHeader{Name: HeaderType, Value: []byte(m.Type)})
		}
		list = append(list, r)
	}
	return list, nil
}

// publishable returns an error if no channel can take a message.
func (s *Source) publishable(m *nixie.Message) error {
	if err := CheckChannel("channel", m.Queue); err != nil {
		return err
	}
	if m.Delay > s.features.MaxPublishDelay || !m.NotBefore.IsZero() || !m.ExpiresAt.IsZero() || m.Priority != 0 {
		return nixie.Errorf(nixie.CodeInvalid, "it has a delay, an expiry or a priority: a channel of %s keeps a delay of at most %s, "+
			"set Then of the source to a store", s.features.System, s.features.MaxPublishDelay)
	}
	return nil
}
