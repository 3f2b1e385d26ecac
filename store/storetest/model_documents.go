package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie/store"
)

// document writes one or two documents, and compares what both stores have of them. Their revisions
// differ, so the machine remembers those of both.
func (m *machine) document(r *rapid.T) {
	p, now := m.process(r), m.clock.Now()
	var sut, ref store.Writing
	keys := rapid.SampledFrom([]string{"x", "y", "xy", "yx"}).Draw(r, "documents")
	verbs := []store.DocumentVerb{store.PutDocument, store.PutDocument, store.RemoveDocument, store.TakeDocument}
	for i, key := range keys {
		c := store.DocumentChange{
			DocumentKey: store.DocumentKey{Space: "model", Key: string(key)},
			Verb:        rapid.SampledFrom(verbs).Draw(r, "verb"),
			If:          rapid.SampledFrom([]int64{0, store.AnyRevision, store.AnyRevision, 1}).Draw(r, "revision"),
			Value:       fmt.Appendf(nil, "%d", m.steps), Label: rapid.SampledFrom([]string{"", "l"}).Draw(r, "label"),
			Owner: rapid.SampledFrom([]string{"o", "p"}).Draw(r, "owner"),
			Lease: rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(r, "lease"),
		}
		if in := rapid.SampledFrom([]time.Duration{0, 0, -time.Second, time.Second, time.Hour}).Draw(r, "expires"); in != 0 {
			c.Expires = now.Add(in)
		}
		if in := rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(r, "due"); in != 0 {
			c.Due = now.Add(in)
		}
		sut.Changes, ref.Changes = append(sut.Changes, c), append(ref.Changes, c)
		if known := m.revisions[string(key)]; c.If == 1 {
			sut.Changes[i].If, ref.Changes[i].If = known[0], known[1]
		}
	}
	if rapid.Bool().Draw(r, "by an operator") {
		queue := m.queue(r)
		sut.Queue, sut.Actor, sut.Reason = queue, "ann", "why"
		ref.Queue, ref.Actor, ref.Reason = queue, "ann", "why"
	}
	got, err := p.sut.Features().Documents.Write(m.ctx, sut)
	want, expected := p.ref.Features().Documents.Write(m.ctx, ref)
	m.sameCode("write documents", err, expected)
	for i := range want {
		if m.revisions == nil {
			m.revisions = map[string][2]int64{}
		}
		m.revisions[ref.Changes[i].Key] = [2]int64{got[i].Revision, want[i].Revision}
	}
	m.same("written", seeDocuments(got), seeDocuments(want))
	for _, q := range []store.DocumentQuery{{}, {Label: "l"}, {DueBy: now.Add(time.Minute)}} {
		q.Space = "model"
		got, _, err := p.sut.Features().Documents.Find(m.ctx, q, store.Page{})
		want, _, expected := p.ref.Features().Documents.Find(m.ctx, q, store.Page{})
		m.sameCode("find documents", err, expected)
		m.same("documents", seeDocuments(got), seeDocuments(want))
	}
}

// seeDocuments shows documents without their revisions.
func seeDocuments(list []store.Document) (seen []string) {
	for _, d := range list {
		seen = append(seen, fmt.Sprint(d.DocumentKey, " ", string(d.Value), " ", d.Label, " ", d.Due.UTC(), d.Expires.UTC(), " ", d.Owner,
			d.Until.UTC(), " ", d.At.UTC(), d.By, " ", d.Revision > 0))
	}
	return seen
}
