package storetest

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

func listClauses() []clause {
	return []clause{
		{"PagesOfLetters", pagesOfLetters},
		{"PagesOfMessages", pagesOfMessages},
		{"BodiesOnlyWhenWhole", bodiesOnlyWhenWhole},
		{"ABadCursorIsInvalid", badCursor},
		{"FiltersMeanWhatTheySay", filtersMean},
		{"MessageFiltersMeanWhatTheySay", messageFiltersMean},
		{"TheNewestMessagesAreThoseOfAnyList", newestMessages},
		{"R25_GroupsMatchARecount", groupsMatch},
		{"R25_CountsMatchARecount", letterCounts},
		{"TextsAreFoundInAnyCase", anyCase},
		{"LettersAndMessagesAreFoundByTheTypeOfAnError", errorTypes},
		{"EachGenerationThatEndedIsListed", endedGenerations},
		{"AnUnknownGroupingIsInvalid", unknownGrouping},
	}
}

// manyLetters makes n letters with random properties, in a few calls.
func (b *fixture) manyLetters(n int, random *rand.Rand) {
	b.Helper()
	for from := 0; from < n; from += 50 {
		var ms []nixie.Message
		for i := from; i < min(from+50, n); i++ {
			ms = append(ms, nixie.Message{
				Queue: work, Type: pick(random, "invoice", "mail"), Key: fmt.Sprint(i), Stream: pick(random, "", "s"), Body: []byte("x"),
				Headers: pick(random, nil, []nixie.Header{{Name: "tenant", Value: "acme"}, {Name: "a", Value: `<"ü\`}}),
			})
		}
		_, err := b.st.Enqueue(b.ctx, ms...)
		b.ok(err)
		ds := b.claim(50)
		b.clock.Advance(time.Duration(random.IntN(1000)) * time.Millisecond)
		var ss []nixie.Settlement
		for _, d := range ds {
			ss = append(ss, b.randomDeath(d, random))
		}
		for _, err := range b.st.Settle(b.ctx, ss) {
			b.ok(err)
		}
		b.clock.Advance(7 * time.Minute)
	}
	all := b.letters(nixie.Filter{})
	same(b, "letters", len(all), n)
	for i, l := range all {
		switch on := []store.Event{store.OnDiscard, store.OnRedrive}; {
		case i%5 == 0:
			b.ok(b.resolve(l.ID, on[0]))
		case i%7 == 0:
			b.ok(b.resolve(l.ID, on[1]))
		}
	}
}

func (b *fixture) randomDeath(d *nixie.Delivery, random *rand.Rand) nixie.Settlement {
	f := b.failure(d, pick(random, "Connection refused", "100% of_it", "no such file"))
	f.FailedAt = f.FailedAt.Add(-time.Duration(random.IntN(60)) * time.Second)
	f.Reason = pick(random, nixie.ReasonTimeout, nixie.ReasonHandler, nixie.ReasonValidation)
	f.Class = pick(random, nixie.ClassPermanent, nixie.ClassTransient, nixie.ClassUnknown)
	burial := burial(pick(random, nixie.StatusOpen, nixie.StatusReview))
	burial.Cause = pick(random, nixie.CauseExhausted, nixie.CausePermanent, nixie.CausePoison)
	burial.Signature = pick(random, "Handler: A", "handler: b", "timeout_%: c")
	burial.Fingerprint = "v1:" + burial.Signature
	burial.Redrivable, burial.NeedsReview = random.IntN(2) == 0, random.IntN(2) == 0
	return nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial}
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func pagesOfLetters(b *fixture) {
	const n = 1000
	b.manyLetters(n, rand.New(rand.NewPCG(1, 1)))
	for _, limit := range []int{0, 7, 333, n, n + 1} {
		seen := map[nixie.ID]bool{}
		var last time.Time
		page := store.Page{Limit: limit}
		for {
			ls, next, err := b.st.Letters(b.ctx, nixie.Filter{}, page)
			b.ok(err)
			if want := cmp.Or(limit, 50); len(ls) > want || next != "" && len(ls) != want {
				b.Fatalf("page has %d letters with next %q, want %d", len(ls), next, want)
			}
			for _, l := range ls {
				if seen[l.ID] {
					b.Fatalf("letter %s is on two pages", l.ID)
				}
				if !last.IsZero() && l.DiedAt.After(last) {
					b.Fatalf("letter %s died at %s, after the one before it at %s", l.ID, l.DiedAt, last)
				}
				seen[l.ID], last = true, l.DiedAt
			}
			if next == "" {
				break
			}
			page.Cursor = next
		}
		same(b, "letters on all pages", len(seen), n)
	}
}

func pagesOfMessages(b *fixture) {
	const n = 120
	for i := range n {
		b.put(fmt.Sprint(i))
		if i%2 == 0 {
			b.clock.Advance(time.Second)
		}
	}
	seen := map[string]bool{}
	var last time.Time
	page := store.Page{Limit: 11}
	for {
		rs, next, err := b.st.Messages(b.ctx, nixie.Filter{}, page)
		b.ok(err)
		for _, r := range rs {
			if seen[r.Key] || !last.IsZero() && r.EnqueuedAt.After(last) {
				b.Fatalf("message %s comes twice or too late", r.Key)
			}
			seen[r.Key], last = true, r.EnqueuedAt
		}
		if next == "" {
			break
		}
		page.Cursor = next
	}
	same(b, "messages on all pages", len(seen), n)
}

func bodiesOnlyWhenWhole(b *fixture) {
	b.dead("a", nixie.StatusOpen)
	ls, _, err := b.st.Letters(b.ctx, nixie.Filter{}, store.Page{})
	b.ok(err)
	if len(ls[0].Message.Body) != 0 || len(ls[0].History) != 0 || ls[0].Message.LastFailure != "it fails" ||
		ls[0].Message.Hash == (nixie.Hash{}) {
		b.Fatalf("letter in a list is %+v", ls[0])
	}
	ls[0].Message.Body = message("a").Body
	bodies, _, err := b.st.Letters(b.ctx, nixie.Filter{}, store.Page{Bodies: true})
	b.ok(err)
	if !reflect.DeepEqual(bodies, ls) {
		b.Fatalf("letters with bodies are %+v, without %+v", bodies, ls)
	}
	rs, _, err := b.st.Messages(b.ctx, nixie.Filter{}, store.Page{})
	b.ok(err)
	if len(rs[0].Body) != 0 || len(rs[0].History) != 0 || rs[0].LastFailure != "it fails" {
		b.Fatalf("message in a list is %+v", rs[0])
	}
}

func badCursor(b *fixture) {
	b.dead("a", nixie.StatusOpen)
	for _, cursor := range []string{"x", "-", "1.x", "💥"} {
		_, _, err := b.st.Letters(b.ctx, nixie.Filter{}, store.Page{Cursor: cursor})
		b.code(err, nixie.CodeInvalid)
		_, _, err = b.st.Messages(b.ctx, nixie.Filter{}, store.Page{Cursor: cursor})
		b.code(err, nixie.CodeInvalid)
		_, _, err = b.st.Audit(b.ctx, store.AuditFilter{Chain: work}, store.Page{Cursor: cursor})
		b.code(err, nixie.CodeInvalid)
	}
}

// randomFilter sets two fields of a filter to values that occur.
func (b *fixture) randomFilter(random *rand.Rand, all []nixie.Letter) nixie.Filter {
	var f nixie.Filter
	some := pick(random, all...)
	yes, no, one := true, false, int64(1)
	parts := []func(){
		func() { f.IDs = []nixie.ID{some.ID, pick(random, all...).Message.ID} },
		func() { f.Queues = []string{work, "other"} },
		func() { f.Queues = []string{"other"} },
		func() { f.Types = []string{some.Message.Type} },
		func() { f.Keys = []string{some.Message.Key, "no such"} },
		func() { f.Streams = []string{some.Message.Stream} },
		func() { f.Statuses = []nixie.Status{some.Status, nixie.StatusQuarantined} },
		func() { f.States = []nixie.State{some.Message.State} },
		func() { f.Reasons = []nixie.Reason{some.Reason} },
		func() { f.Classes = []nixie.Class{some.Class, nixie.ClassUnknown} },
		func() { f.Causes = []nixie.Cause{some.Cause} },
		func() { f.Signature = pick(random, "HANDLER", "_", "%", "b", "zzz") },
		func() { f.Fingerprints = []string{some.Fingerprint, pick(random, all...).Fingerprint} },
		func() { f.Text = pick(random, "REFUSED", "%", "_", "such file", "zzz") },
		func() { f.ErrorTypes = []string{pick(random, "ERROR", "storetest.", "_", "zzz"), "%"} },
		func() { f.Not = []nixie.Filter{{ErrorTypes: []string{"test.error"}}} },
		func() { f.Redrivable = pick(random, &yes, &no) },
		func() { f.NeedsReview = pick(random, &yes, &no) },
		func() { f.Age.Min = b.clock.Now().Sub(some.DiedAt) },
		func() { f.Age.Max = b.clock.Now().Sub(some.DiedAt) },
		func() { f.Died.After = some.DiedAt },
		func() { f.Died.Before = some.DiedAt },
		func() { f.FirstFailed.After = some.FirstFailedAt },
		func() { f.LastFailed.Before = some.LastFailedAt },
		func() { f.Redrives.Min = &one },
		func() { f.Attempts.Max = &one },
		func() { f.Deliveries.Min = &one },
		func() { f.Operation = some.ID },
		func() { f.Crashes.Max = &one },
		func() { f.Crashes.Min = &one },
		func() { f.Due.After = b.clock.Now() },
		func() { f.Endings = []string{ending(some.ID, 6)} },
		func() {
			f.Endings = []string{"zz", ending(some.ID, 8), ending(some.Message.ID, 9), ending(pick(random, all...).ID, 31)}
		},
		func() { f.IDs, f.Endings = []nixie.ID{some.Message.ID}, []string{ending(pick(random, all...).ID, 13)} },
		func() { f.Headers = pick(random, all...).Message.Headers },
		func() { f.Headers = []nixie.Header{{Name: "tenant", Value: "acme"}} },
		func() { f.Not = []nixie.Filter{{Reasons: []nixie.Reason{some.Reason}}} },
		func() { f.Not = []nixie.Filter{{Keys: []string{some.Message.Key}}, {Text: "refused"}} },
		func() {
			f.Not = []nixie.Filter{{Fingerprints: []string{some.Fingerprint}}, {Streams: []string{some.Message.Stream}}}
		},
		func() { f.Not = []nixie.Filter{{Died: nixie.Times{After: some.DiedAt}}} },
		func() { f.Not = []nixie.Filter{{IDs: []nixie.ID{some.ID}}, {Endings: []string{ending(some.ID, 7)}}} },
		func() { f.Not = []nixie.Filter{{Headers: []nixie.Header{{Name: "tenant", Value: "acme"}}}} },
	}
	for range 2 {
		pick(random, parts...)()
	}
	return f
}

// ending returns the last digits of an ID.
func ending(id nixie.ID, digits int) string { return hex.EncodeToString(id[:])[32-digits:] }

func filtersMean(b *fixture) {
	random := rand.New(rand.NewPCG(3, 4))
	b.manyLetters(300, random)
	all := b.letters(nixie.Filter{})
	for range 200 {
		f := b.randomFilter(random, all)
		want := map[nixie.ID]bool{}
		for i := range all {
			if filter.MatchLetter(&f, &all[i], b.clock.Now()) {
				want[all[i].ID] = true
			}
		}
		for _, l := range b.letters(f) {
			if !want[l.ID] {
				b.Fatalf("filter %+v gave letter %+v, which it does not match", f, l)
			}
			delete(want, l.ID)
		}
		if len(want) > 0 {
			b.Fatalf("filter %+v missed %d letters, one is %+v", f, len(want), b.letter(anyKey(want)))
		}
	}
}

func anyKey[K comparable, V any](m map[K]V) (key K) {
	for k := range m {
		return k
	}
	return key
}

func messageFiltersMean(b *fixture) {
	random := rand.New(rand.NewPCG(5, 6))
	b.manyLetters(100, random)
	b.retried(5)
	letters := b.letters(nixie.Filter{})
	all, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	for range 200 {
		f := b.randomFilter(random, letters)
		want := map[nixie.ID]bool{}
		for i := range all {
			newest := ""
			if n := len(all[i].History); n > 0 {
				newest = all[i].History[n-1].Type
			}
			if filter.MatchMessage(&f, &all[i].Message, newest, b.clock.Now()) {
				want[all[i].ID] = true
			}
		}
		got, err := allMessages(b.ctx, b.st, f)
		b.ok(err)
		for _, m := range got {
			if !want[m.ID] {
				b.Fatalf("filter %+v gave message %+v, which it does not match", f, m)
			}
			delete(want, m.ID)
		}
		same(b, fmt.Sprintf("messages missed by filter %+v", f), len(want), 0)
		newest, _, err := b.st.Messages(b.ctx, f, store.Page{Limit: len(all), Newest: true})
		b.ok(err)
		if !reflect.DeepEqual(idsOf(newest), idsOf(got)) { // there are less than it looks at
			b.Fatalf("the newest of filter %+v are %v, want %v", f, idsOf(newest), idsOf(got))
		}
	}
}

// newestMessages lists messages of each state, also of those that no worker has claimed, with a
// bound that is not reached.
func newestMessages(b *fixture) {
	_, err := b.st.Adjust(b.ctx, "ordered", "ann", "in order", func(set *nixie.QueueSettings) error {
		set.Order = nixie.OrderStrict
		return nil
	})
	b.ok(err)
	now := b.clock.Now()
	for _, queue := range []string{work, "other", "ordered"} {
		for i := range 12 {
			m := nixie.Message{Queue: queue, Type: "mail", Key: fmt.Sprint(i)}
			switch {
			case queue == "ordered":
				m.Stream = fmt.Sprint("s", i%3)
			case i%4 == 3:
				m.Delay = time.Hour
			}
			_, err := b.st.Enqueue(b.ctx, m)
			b.ok(err)
		}
		for _, verb := range []nixie.Verb{nixie.Complete, nixie.Discard, nixie.Retry, ""} {
			ds, err := b.st.Claim(b.ctx, queue, nixie.Want{Max: 1, Lease: time.Hour})
			b.ok(err)
			for _, d := range ds {
				if verb != "" {
					s := nixie.Settlement{Delivery: d, Verb: verb, Failure: b.failure(d, "it fails")}
					b.ok(errors.Join(b.st.Settle(b.ctx, []nixie.Settlement{s})...))
				}
			}
		}
	}
	once := int64(1)
	for _, f := range []nixie.Filter{
		{}, {States: []nixie.State{nixie.Queued}}, {States: []nixie.State{nixie.Leased}}, {States: []nixie.State{nixie.Succeeded}},
		{States: []nixie.State{nixie.Discarded}}, {States: []nixie.State{nixie.Canceled, nixie.Discarded}},
		{States: []nixie.State{nixie.Queued}, Attempts: nixie.Range{Min: &once}}, {States: []nixie.State{nixie.Queued, nixie.Leased}},
		{States: []nixie.State{nixie.Queued}, Due: nixie.Times{After: now}}, {Keys: []string{"3", "4"}},
		{States: []nixie.State{nixie.Queued}, Not: []nixie.Filter{{Due: nixie.Times{After: now}}}},
	} {
		for _, queues := range [][]string{nil, {work}, {"other", "ordered"}, {"ordered"}, {"none"}} {
			f.Queues = queues
			all, err := allMessages(b.ctx, b.st, f)
			b.ok(err)
			var newest []store.Record
			for page := (store.Page{Limit: 5, Newest: true}); ; {
				list, next, err := b.st.Messages(b.ctx, f, page)
				b.ok(err)
				newest = append(newest, list...)
				if page.Cursor = next; next == "" {
					break
				}
			}
			if !reflect.DeepEqual(idsOf(newest), idsOf(all)) {
				b.Fatalf("the newest of filter %+v are %v, want %v", f, idsOf(newest), idsOf(all))
			}
		}
	}
}

func idsOf(list []store.Record) []nixie.ID {
	ids := []nixie.ID{}
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// errorTypes finds letters and messages by a part of the type of their newest failure, over a
// redrive.
func errorTypes(b *fixture) {
	d := b.took("a")
	b.put("never failed")
	typed := func(name string) *nixie.Failure {
		f := b.failure(d, "it fails")
		f.Type = name
		return f
	}
	found := func(letters, messages int, parts ...string) {
		b.Helper()
		f := nixie.Filter{ErrorTypes: parts}
		same(b, fmt.Sprintf("letters of types with %q", parts), len(b.letters(f)), letters)
		ms, err := allMessages(b.ctx, b.st, f)
		b.ok(err)
		same(b, fmt.Sprintf("messages of types with %q", parts), len(ms), messages)
	}
	s := b.dying(d, nixie.StatusOpen)
	s.Failure = typed(`asyncio.TimeoutError<"x">`)
	b.ok(b.settle(s))
	found(1, 1, "TimeoutError")
	found(1, 1, "ValueError", "timeouterror<\"X\">")
	found(0, 0, "it fails")
	found(0, 0, "Timeout%")
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	found(1, 1, "asyncio.")
	d = b.take("a")
	found(1, 1, "asyncio.")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: typed("ValueError")}))
	found(0, 0, "asyncio.")
	found(1, 1, "valueerror")
	not := nixie.Filter{Not: []nixie.Filter{{ErrorTypes: []string{"value"}}}}
	ms, err := allMessages(b.ctx, b.st, not)
	b.ok(err)
	same(b, "messages without it", len(ms), 1)
	same(b, "letters without it", len(b.letters(not)), 0)
}

// anyCase finds letters and messages by texts in upper and lower case, also beyond ASCII.
func anyCase(b *fixture) {
	d := b.took("a")
	s := b.dying(d, nixie.StatusOpen)
	s.Failure.Text, s.Burial.Signature = "Größe ÜBER Grenze", "Σφάλμα: ÄRGER"
	b.ok(b.settle(s))
	for _, text := range []string{"grösse", "GRÖẞE", "größe über", "GRÖßE Über", "über", "ÜBER GRENZE"} {
		f := nixie.Filter{Text: text}
		l := b.letter(d.ID)
		same(b, "letters with the text "+text, len(b.letters(f)) == 1, filter.MatchLetter(&f, &l, b.clock.Now()))
		ms, _, err := b.st.Messages(b.ctx, f, store.Page{})
		b.ok(err)
		same(b, "messages with the text "+text, len(ms) == 1, filter.MatchMessage(&f, &l.Message, "", b.clock.Now()))
	}
	same(b, "letters", len(b.letters(nixie.Filter{Text: "größe über", Signature: "σφάλμα: ärger"})), 1)
	same(b, "letters", len(b.letters(nixie.Filter{Signature: "ΣΦΆΛΜΑ"})), 1)
	same(b, "letters", len(b.letters(nixie.Filter{Signature: "ΣΦΑΛΜΑ"})), 0)
}

func groupsMatch(b *fixture) {
	random := rand.New(rand.NewPCG(7, 8))
	b.manyLetters(300, random)
	all := b.letters(nixie.Filter{})
	keys := groupKeys()
	delete(keys, store.ByQueueHour) // it is not described
	delete(keys, store.ByLabel)     // nor is that
	for by, key := range keys {
		for range 5 {
			f := b.randomFilter(random, all)
			found := b.letters(f)
			newest := map[string][]nixie.ID{}
			for i := range found {
				k := key(&found[i])
				newest[k] = append(newest[k], found[i].ID)
			}
			want := regroup(found, key)
			got, looked, err := b.st.Count(b.ctx, f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanRecent, Described: true})
			b.ok(err)
			same(b, fmt.Sprintf("groups by %s", by), len(got[0]), len(want))
			same(b, "all were looked at", looked.All(), true)
			last := int64(1 << 40)
			for _, g := range got[0] {
				w := want[g.Key]
				if w == nil || g.Count != w.Count || !g.FirstAt.Equal(w.FirstAt) || !g.LastAt.Equal(w.LastAt) || g.Count > last {
					b.Fatalf("group by %s is %+v, want %+v, largest first", by, g, w)
				}
				if newest := newest[g.Key]; !slices.Equal(g.Examples, newest[:min(len(newest), 3)]) {
					b.Fatalf("group by %s %s has the examples %v, its newest are %v", by, g.Key, g.Examples, newest)
				}
				if by == store.ByFingerprint && "v1:"+g.Label != g.Key {
					b.Fatalf("group %s has the label %q", g.Key, g.Label)
				}
				last = g.Count
			}
		}
	}
}

// letterCounts counts by all properties in one call, and by each in a call of its own.
func letterCounts(b *fixture) {
	random := rand.New(rand.NewPCG(9, 10))
	b.manyLetters(300, random)
	all := b.letters(nixie.Filter{})
	keys := groupKeys()
	by := slices.Sorted(maps.Keys(keys))
	for range 10 {
		f := b.randomFilter(random, all)
		found := b.letters(f)
		got, looked, err := b.st.Count(b.ctx, f, store.Counting{By: by, Scan: store.ScanRecent})
		b.ok(err)
		same(b, "all were looked at", looked.All(), true)
		same(b, "lists", len(got), len(by))
		for i, by := range by {
			want := map[string]int64{}
			for key, g := range regroup(found, keys[by]) {
				want[key] = g.Count
			}
			alone, _, err := b.st.Count(b.ctx, f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll})
			b.ok(err)
			if !maps.Equal(store.Sizes(got[i]), want) || !maps.Equal(store.Sizes(alone[0]), want) {
				b.Fatalf("counts by %s of filter %+v are %v, and %v alone, want %v", by, f, got[i], alone[0], want)
			}
		}
	}
}

func groupKeys() map[store.GroupBy]func(*nixie.Letter) string {
	return map[store.GroupBy]func(*nixie.Letter) string{
		store.ByFingerprint: func(l *nixie.Letter) string { return l.Fingerprint },
		store.ByReason:      func(l *nixie.Letter) string { return string(l.Reason) },
		store.ByClass:       func(l *nixie.Letter) string { return string(l.Class) },
		store.ByType:        func(l *nixie.Letter) string { return l.Message.Type },
		store.ByQueue:       func(l *nixie.Letter) string { return l.Message.Queue },
		store.ByStatus:      func(l *nixie.Letter) string { return string(l.Status) },
		store.ByHour:        func(l *nixie.Letter) string { return l.DiedAt.UTC().Format("2006-01-02T15") },
		store.ByQueueHour:   func(l *nixie.Letter) string { return l.DiedAt.UTC().Format("2006-01-02T15") + " " + l.Message.Queue },
		store.ByRedrivable:  func(l *nixie.Letter) string { return yesNo(l.Redrivable) },
		store.ByAttempts:    func(l *nixie.Letter) string { return strconv.Itoa(l.Message.Attempts) },
		store.ByReview:      func(l *nixie.Letter) string { return yesNo(l.NeedsReview) },
		store.ByLabel: func(l *nixie.Letter) string {
			return strings.Join([]string{l.Fingerprint, string(l.Reason), l.Message.Type, l.Signature}, "\n")
		},
	}
}

// yesNo writes a flag as filters do, so that it can be the key of a group.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// regroup counts letters one by one.
func regroup(ls []nixie.Letter, key func(*nixie.Letter) string) map[string]*store.Group {
	groups := map[string]*store.Group{}
	slices.SortFunc(ls, func(a, b nixie.Letter) int { return a.DiedAt.Compare(b.DiedAt) })
	for i := range ls {
		k := key(&ls[i])
		if groups[k] == nil {
			groups[k] = &store.Group{Key: k, FirstAt: ls[i].DiedAt}
		}
		groups[k].Count++
		groups[k].LastAt = ls[i].DiedAt
	}
	return groups
}

func unknownGrouping(b *fixture) {
	_, _, err := b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{"colour"}, Scan: store.ScanRecent, Described: true})
	b.code(err, nixie.CodeInvalid)
	_, _, err = b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByReason, "colour"}, Scan: store.ScanRecent})
	b.code(err, nixie.CodeInvalid)
	for _, by := range []store.GroupBy{store.ByQueueHour, store.ByLabel} {
		_, _, err = b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{by}, Described: true})
		b.code(err, nixie.CodeInvalid)
	}
}
