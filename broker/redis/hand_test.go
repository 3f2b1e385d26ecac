package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// want leases up to ten records for a minute.
var want = broker.Want{Max: 10, Lease: time.Minute}

// pointers returns the records as calls of a driver want them.
func pointers(records []broker.Record) []*broker.Record {
	list := make([]*broker.Record, len(records))
	for n := range records {
		list[n] = &records[n]
	}
	return list
}

// take receives one record, and fails if there is another number of them.
func take(t testing.TB, d *Driver, n int) []broker.Record {
	t.Helper()
	got, err := d.Receive(t.Context(), broker.Want{Max: n, Lease: time.Minute})
	if err != nil || len(got) != n {
		t.Fatalf("%d records, want %d: %v", len(got), n, err)
	}
	return got
}

// What is left of a mailbox one of whose keys was deleted by hand is found, and the loss is told.
func TestKeysDeletedByHand(t *testing.T) {
	t.Parallel()
	for n, c := range []struct {
		key    string
		again  int        // of three visible records, one leased and one delayed
		says   string     // in the error of a Receive
		settle nixie.Code // of the record that was leased
		code   nixie.Code // of that error
		sent   int        // new records that come too
		create bool       // the mailbox is to be made again
	}{
		{key: "pending", again: 3, says: "3 records in no list", code: nixie.CodeInternal, sent: 2},
		{key: "held", again: 5, says: "2 records in no list", code: nixie.CodeInternal, sent: 2},
		{key: "records", says: "lost 3 records", code: nixie.CodeInternal, sent: 2},
		{key: "counts", says: "there is no such mailbox", code: nixie.CodeNotFound, settle: nixie.CodeLeaseLost, create: true, again: 3,
			sent: 2},
		{key: "holders", again: 3, settle: nixie.CodeLeaseLost, sent: 2},
		{key: "wake", again: 3, sent: 2},
	} {
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			f := actual(t)
			d := f.open(t, Config{})
			f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("leased")})
			leased := take(t, d, 1)
			f.produce(t, 3, func(int) string { return fine })
			f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("delayed"), Delay: time.Hour})
			if err := f.client.Del(t.Context(), f.mailbox().keys[n]).Err(); err != nil {
				t.Fatal(err)
			}
			got, err := d.Receive(t.Context(), want)
			if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) || nixie.CodeOf(err) != c.code {
				t.Errorf("%v", err)
			}
			t.Log(err)
			if c.create {
				if err := d.Ack(t.Context(), pointers(leased))[0]; nixie.CodeOf(err) != c.settle {
					t.Errorf("the leased record: %v", err)
				}
				if err := f.mailbox().create(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("new")},
				broker.Publication{Channel: f.at.Mailbox, Value: []byte("newer")})
			values, ids := map[string]bool{}, map[[16]byte]bool{}
			for len(got) > 0 || err != nil {
				for _, r := range got {
					values[string(r.Value)], ids[r.ID] = true, true
				}
				got, err = d.Receive(t.Context(), want)
			}
			if len(values) != c.again+c.sent || len(ids) != len(values) || !values["new"] {
				t.Errorf("these came: %v", values)
			}
			if err := d.Ack(t.Context(), pointers(leased))[0]; !c.create && c.key != "held" && nixie.CodeOf(err) != c.settle {
				t.Errorf("the leased record: %v", err)
			}
		})
	}
}

// After the clock was set back a lease seems to end in days. Who opens the mailbox shortens it to
// the longest one that there is, and leaves others alone.
func TestLeasesAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, 2, func(int) string { return fine })
	late, held := take(t, d, 1)[0], f.mailbox().keys[1]
	usual, err := d.Receive(t.Context(), broker.Want{Max: 1, Lease: MaxLease})
	if err != nil || len(usual) != 1 {
		t.Fatal(usual, err)
	}
	f.client.ZIncrBy(t.Context(), held, float64((48 * time.Hour).Milliseconds()), late.MessageID)
	ends := func(r *broker.Record) time.Duration {
		return time.Until(time.UnixMilli(int64(f.client.ZScore(t.Context(), held, r.MessageID).Val())))
	}
	left := ends(&usual[0])
	other := f.open(t, Config{})
	if within := ends(&late); within > MaxLease || within < MaxLease-time.Hour {
		t.Errorf("the late lease ends in %s, want %s at most", within, MaxLease)
	}
	if now := ends(&usual[0]); now > left || now < left-time.Hour {
		t.Errorf("the usual lease ended in %s, and now in %s", left, now)
	}
	if left, err := other.Remaining(t.Context()); err != nil || left.Ours != 0 || left.All != 2 || left.Within > MaxLease+grace {
		t.Errorf("%+v, %v", left, err)
	}
	for _, r := range []*broker.Record{&late, &usual[0]} {
		if err := d.Ack(t.Context(), []*broker.Record{r})[0]; err != nil {
			t.Error(err)
		}
	}
}

// A mailbox is opened in the same time however much waits in it, and put into order in one that
// grows as its records do. Commands of the server tell: they do not depend on the machine.
func TestOpenAFullMailbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Address{Servers: []string{testservers.OwnRedis(t).Addr}})
	f.produce(t, 20_000, func(int) string { return fine })
	closed(t, f.open(t, Config{}))
	if n := f.calls(t, "lrange") + f.calls(t, "lpos"); n > 0 {
		t.Errorf("%d commands looked at what waits", n)
	}
	if err := f.client.LTrim(t.Context(), f.mailbox().keys[0], 0, 9_999).Err(); err != nil {
		t.Fatal(err)
	}
	var told []error
	d := f.open(t, Config{Warn: func(err error) { told = append(told, err) }})
	if len(told) != 1 || !strings.Contains(told[0].Error(), "had 10000 records in no list") {
		t.Error(told)
	}
	if n, all := f.calls(t, "lrange")+f.calls(t, "lpos"), f.calls(t, "zscore"); n > 1 || all > 20_000 {
		t.Errorf("%d commands looked at what waits, %d at what is held", n, all)
	}
	s, err := f.mailbox().stats(t.Context())
	if err != nil || s.Visible != 20_000 {
		t.Errorf("%+v, %v", s, err)
	}
	closed(t, d)
}

func closed(t *testing.T, d *Driver) {
	t.Helper()
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// calls counts the calls of a command.
func (f *fixture) calls(t *testing.T, command string) int {
	t.Helper()
	text := infoField(f.client.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command)
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "calls="), ",")
	return number(text)
}

// A server that has forgotten the script gets it again.
func TestScriptIsLoadedAgain(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	for range 3 {
		if err := f.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		f.produce(t, 1, func(int) string { return fine })
		if err := d.Ack(t.Context(), pointers(take(t, d, 1)))[0]; err != nil {
			t.Error(err)
		}
	}
}

// A key of another type, or a mailbox of another format, is refused by every verb, and stays as it
// is.
func TestForeignKeysAreRefused(t *testing.T) {
	t.Parallel()
	for n := range keysOf("x")[:5] {
		f := actual(t)
		d := f.open(t, Config{})
		key := f.mailbox().keys[n]
		f.client.Del(t.Context(), key)
		if err := f.client.Set(t.Context(), key, "another program's", 0).Err(); err != nil {
			t.Fatal(err)
		}
		refused(t, f, d, nixie.CodeInvalid, "another program uses a key of this mailbox")
		if text := f.client.Get(t.Context(), key).Val(); text != "another program's" {
			t.Errorf("%s is %q", key, text)
		}
	}
	f := actual(t)
	d := f.open(t, Config{})
	f.client.HSet(t.Context(), f.mailbox().keys[3], "@format", "2")
	refused(t, f, d, nixie.CodeInvalid, "a newer Nixie made this mailbox")
}

// refused checks that every verb is.
func refused(t *testing.T, f *fixture, d *Driver, code nixie.Code, says string) {
	t.Helper()
	ctx, r := t.Context(), broker.Record{MessageID: "1", Receipt: receipt("x")}
	_, received := d.Receive(ctx, want)
	_, looked := f.mailbox().stats(ctx)
	_, repaired := f.mailbox().repair(ctx)
	for verb, err := range map[string]error{
		"send":    f.sent.Publish(ctx, []broker.Publication{{Channel: f.at.Mailbox}})()[0],
		"receive": received, "stats": looked, "repair": repaired,
		"ack":    d.Ack(ctx, []*broker.Record{&r})[0],
		"nack":   d.Nack(ctx, []broker.Return{{Record: &r}})[0],
		"extend": d.Extend(ctx, []*broker.Record{&r}, time.Second)[0],
		"create": f.mailbox().create(ctx, &Retention{}),
	} {
		if nixie.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// A record that another program wrote in a wrong form is handed out as it lies there, with a header
// that says so.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	keys := f.mailbox().keys
	for _, body := range []string{"", "x", "1-:1:x", ":1-:1:x", "-5:1-:1:x", "12x:1-:1:x", "99999999999999:1-:1:x",
		strings.Repeat("9", 400) + ":1-:1:x", "1764000000000:", "1764000000000:2-:-:", "1764000000000:1-:", "1764000000000:13:ab-:"} {
		f.client.HSet(t.Context(), keys[2], "strange", body)
		f.client.RPush(t.Context(), keys[0], "strange")
		r := take(t, d, 1)[0]
		if string(r.Value) != body || header(&r, HeaderDamage) == "" || r.Damage != header(&r, HeaderDamage) || r.ID == [16]byte{} {
			t.Errorf("%q: %+v", body, r)
		}
		if err := d.Ack(t.Context(), []*broker.Record{&r})[0]; err != nil {
			t.Error(err)
		}
	}
}

// A record without the time of sending closes no mailbox that removes what is old: it is looked at,
// stays until a receiver gets it as damaged, and what is old behind it goes.
func TestRecordWithoutATime(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "x", "1-:1:x", ":1-:1:x", "-5:1-:1:x", "12x:1-:1:x", strings.Repeat("9", 400) + ":1-:1:x"} {
		f := actual(t)
		d := f.open(t, Config{Retention: &Retention{Keep: time.Hour, Drop: true}})
		keys := f.mailbox().keys
		f.client.HSet(t.Context(), keys[2], "strange", body, "old", "5:1-:1:x")
		f.client.RPush(t.Context(), keys[0], "strange", "old")
		f.produce(t, 1, func(int) string { return fine })
		s, err := f.mailbox().stats(t.Context())
		if err != nil || s.Visible != 2 || s.Expired != 1 || s.Oldest != -1 {
			t.Errorf("%.20q: %+v %v", body, s, err)
		}
		got := take(t, d, 2)
		if string(got[0].Value) != body || got[0].Damage == "" || got[1].Damage != "" || string(got[1].Value) != fine+" 0" {
			t.Errorf("%.20q: %+v", body, got)
		}
	}
}

// A claim whose answer was lost leases records in vain: the next one gives them back first, and
// they are no suspects.
func TestClaimWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, 5, func(int) string { return fine })
	hook := &cutOnce{after: "claim"}
	d.client.AddHook(hook)
	if _, err := d.Receive(t.Context(), want); nixie.CodeOf(err) != nixie.CodeOutcomeUnknown {
		t.Fatal(err)
	}
	for n, r := range take(t, d, 5) {
		if r.Crashes != 0 || r.PriorDeliveries != 0 || string(r.Value) != fine+" "+string(rune('0'+n)) {
			t.Errorf("%+v", r)
		}
	}
}

// cutOnce loses the answer of one call of a verb.
type cutOnce struct {
	after string
	done  bool
}

func (c *cutOnce) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *cutOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *cutOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); err == nil && !c.done && len(args) > 9 && args[9] == c.after {
			c.done = true
			cmd.SetErr(context.DeadlineExceeded)
			return context.DeadlineExceeded
		}
		return err
	}
}

// Records that are kept no longer come to the receiver as expired, or are removed and counted.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		f := actual(t)
		d := f.open(t, Config{Retention: &Retention{Keep: time.Hour, Drop: drop}})
		f.produce(t, 2, func(int) string { return fine })
		keys := f.mailbox().keys
		f.client.HSet(t.Context(), keys[2], "1", strings.Replace(f.client.HGet(t.Context(), keys[2], "1").Val(), "1", "0", 1)) // long ago
		got, err := d.Receive(t.Context(), want)
		if err != nil || len(got) != 2 && !drop || len(got) != 1 && drop || got[0].Retention != time.Hour {
			t.Fatal(len(got), err)
		}
		s, err := f.mailbox().stats(t.Context())
		if err != nil || drop && s.Expired != 1 || !drop && s.Expired != 0 || s.Retention != (Retention{time.Hour, drop}) {
			t.Errorf("%+v %v", s, err)
		}
	}
}
