package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// What one call tells of many messages is kept as it was told, however many of them
// have something in common: all, some, or hardly two. Each second one is in a batch, the
// others have rows of their own.
func TestKindsOfOneCall(t *testing.T) {
	for _, c := range []struct{ messages, kinds int }{{1, 1}, {5, 5}, {120, 1}, {120, 3}, {120, 90}, {1600, 1}, {1600, 3}} {
		t.Run(fmt.Sprint(c.messages, " of ", c.kinds), func(t *testing.T) {
			list, _ := crowd(t, 1)
			s := list[0]
			fill(t, s, c.messages)
			verbs, told := [...]nixie.Verb{nixie.Bury, nixie.Retry, nixie.Discard}, map[string]nixie.Settlement{}
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: c.messages, Lease: time.Hour})
			must(t, err)
			var call []nixie.Settlement
			for i, d := range ds {
				kind := i % c.kinds
				st := nixie.Settlement{Delivery: d, Verb: verbs[kind%3], Note: fmt.Sprint("note ", kind), Failure: &nixie.Failure{
					FailedAt: time.Unix(int64(i)+1, 0), Class: nixie.ClassTransient, Reason: nixie.Reasons()[kind%20], Text: "text " +
						d.Key, Type: fmt.Sprint("type ", kind), Worker: d.Key,
				}}
				if st.Verb == nixie.Bury {
					st.Burial = &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen,
						Signature: fmt.Sprint("signature ", kind), Fingerprint: fmt.Sprint(kind), Redrivable: kind%2 == 0}
				}
				call, told[d.Key] = append(call, st), st
			}
			for _, err := range s.Settle(t.Context(), call) {
				must(t, err)
			}
			sound(t, s)
			letters, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: c.messages, Whole: true})
			must(t, err)
			for i := range letters {
				l, st := &letters[i], told[letters[i].Message.Key]
				if l.Signature != st.Burial.Signature || l.Fingerprint != st.Burial.Fingerprint || l.Redrivable != st.Burial.Redrivable ||
					l.Reason != st.Failure.Reason || l.Note != st.Note || !l.LastFailedAt.Equal(st.Failure.FailedAt) {
					t.Errorf("letter of message %s is %+v, told %+v", l.Message.Key, l, st.Burial)
				}
			}
			messages, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Limit: c.messages, Whole: true})
			must(t, err)
			ends := map[nixie.State]int{}
			for i := range messages {
				m := &messages[i]
				st, f := told[m.Key], m.History[0]
				ends[m.State]++
				if len(m.History) != 1 || f.Text != st.Failure.Text || f.Reason != st.Failure.Reason || f.Type != st.Failure.Type ||
					f.Worker != m.Key || f.Decision != st.Verb || m.LastReason != st.Failure.Reason {
					t.Errorf("message %s is %s with %+v, told %+v", m.Key, m.State, f, st.Failure)
				}
			}
			if ends[nixie.Dead] != len(letters) || ends[nixie.Dead]+ends[nixie.Queued]+ends[nixie.Discarded] != c.messages ||
				c.messages > 5 && c.kinds > 1 && len(ends) != 3 {
				t.Errorf("%d letters, messages are %v", len(letters), ends)
			}
		})
	}
}

// Messages that were retried are completed together with others, under leases of
// several numbers. A number that is over completes nothing.
func TestRetriedAndNewAreCompletedTogether(t *testing.T) {
	list, _ := crowd(t, 1)
	s := list[0]
	fill(t, s, 6)
	claim := func() []*nixie.Delivery {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10, Lease: time.Hour})
		must(t, err)
		return ds
	}
	first := claim()
	retry := func(ds ...*nixie.Delivery) {
		for _, d := range ds {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Retry, Failure: &nixie.Failure{Text: "no"}}})[0])
		}
	}
	retry(first[:4]...)
	second := claim()
	retry(second[:2]...)
	third := claim()
	complete := func(ds ...*nixie.Delivery) (done int) {
		var call []nixie.Settlement
		for _, d := range ds {
			call = append(call, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
		}
		for _, err := range s.Settle(t.Context(), call) {
			switch nixie.CodeOf(err) {
			case "":
				done++
			case nixie.CodeLeaseLost:
			default:
				t.Error(err)
			}
		}
		return done
	}
	if n := complete(second[:2]...); n != 0 {
		t.Errorf("%d were completed under leases that were over", n)
	}
	if n := complete(third[0], second[2], first[4], second[0]); n != 3 { // the last is third[0] under another lease
		t.Errorf("%d were completed, not 3", n)
	}
	if n := complete(third[1], second[3], first[5]); n != 3 {
		t.Errorf("%d were completed, not 3", n)
	}
	done, _, err := s.Messages(t.Context(), nixie.Filter{States: []nixie.State{nixie.Succeeded}}, store.Page{})
	must(t, err)
	attempts := 0
	for i := range done {
		attempts += done[i].Attempts
	}
	if len(done) != 6 || attempts != 2*1+2*2+2*3 {
		t.Errorf("%d have succeeded, in %d attempts", len(done), attempts)
	}
	sound(t, s)
}
