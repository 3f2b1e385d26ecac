package runner

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func testDecider(t *testing.T, mode Mode) *decider {
	t.Helper()
	c := policy.Config{MaxAttempts: 2, Backoff: policy.Backoff{Base: time.Second, Jitter: policy.JitterNone}}
	switch mode {
	case Discard:
		c.OnExhausted = nixie.Discard
	case Stop:
		c.OnExhausted = nixie.Halt
	}
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &decider{
		policy: func(string) *policy.Policy { return p }, mode: mode, tell: func(*nixie.Settlement) {}, answers: map[nixie.ID]answer{},
	}
}

func delivery(attempts, deliveries int) *nixie.Delivery {
	return &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Queue: "j", Attempts: attempts, Deliveries: deliveries, Generation: 1,
		EnqueuedAt: noon}}
}

// The verb depends on the mode, the custom command's answer, the attempts and the deliveries. With
// two attempts there are 16 deliveries at most.
func TestDecider(t *testing.T) {
	broken, wrong := errors.New("broken"), nixie.Permanent(errors.New("wrong"))
	second := errors.New("custom broke")
	for _, tc := range []struct {
		name                 string
		mode                 Mode
		err                  error
		attempts, deliveries int
		answer               *answer
		verb                 nixie.Verb
		delay                time.Duration
		buried, second       bool
	}{
		{"first failure", ToOffice, broken, 1, 1, nil, nixie.Retry, time.Second, false, false},
		{"used up", ToOffice, broken, 2, 2, nil, nixie.Bury, 0, true, false},
		{"permanent", ToOffice, wrong, 1, 1, nil, nixie.Bury, 0, true, false},
		{"discard", Discard, broken, 2, 2, nil, nixie.Discard, 0, false, false},
		{"stop", Stop, broken, 2, 2, nil, nixie.Halt, 0, true, false},
		{"goes on", KeepOn, broken, 2, 2, nil, nixie.Retry, 2 * time.Second, false, false},
		{"goes on later", KeepOn, nixie.RetryAfter(broken, time.Hour), 2, 2, nil, nixie.Retry, time.Hour, false, false},
		{"goes on to the end", KeepOn, broken, 16, 16, nil, nixie.Bury, 0, true, false},
		{"permanent does not go on", KeepOn, wrong, 1, 1, nil, nixie.Bury, 0, true, false},
		{"custom discards", "custom:x", broken, 2, 2, &answer{verb: nixie.Discard}, nixie.Discard, 0, false, false},
		{"custom retries", "custom:x", broken, 2, 2, &answer{verb: nixie.Retry}, nixie.Retry, 2 * time.Second, false, false},
		{"custom retries a permanent one", "custom:x", wrong, 1, 1, &answer{verb: nixie.Retry}, nixie.Retry, time.Second, false, false},
		{"custom cannot retry for ever", "custom:x", broken, 16, 16, &answer{verb: nixie.Retry}, nixie.Bury, 0, true, false},
		{"custom buries", "custom:x", broken, 2, 2, &answer{verb: nixie.Bury}, nixie.Bury, 0, true, false},
		{"custom stops", "custom:x", broken, 2, 2, &answer{verb: nixie.Halt}, nixie.Halt, 0, true, false},
		{"custom breaks", "custom:x", broken, 2, 2, &answer{verb: nixie.Bury, second: second}, nixie.Bury, 0, true, true},
		{"no answer", "custom:x", broken, 2, 2, nil, nixie.Bury, 0, true, false},
		{"an answer to nothing", "custom:x", broken, 1, 1, &answer{verb: nixie.Discard}, nixie.Retry, time.Second, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := testDecider(t, tc.mode)
			d := delivery(tc.attempts, tc.deliveries)
			if tc.answer != nil {
				j.keep(d.ID, *tc.answer)
			}
			st := j.Decide(d, j.policy("").Diagnose(d, tc.err, policy.Attempt{FailedAt: noon}), noon)
			if st.Verb != tc.verb || st.Delay != tc.delay || (st.Burial != nil) != tc.buried || (st.Second != nil) != tc.second {
				t.Errorf("got %s after %s, burial %v, second %v", st.Verb, st.Delay, st.Burial, st.Second)
			}
			if st.Failure.Decision != tc.verb {
				t.Errorf("the failure says %s", st.Failure.Decision)
			}
			if tc.verb == nixie.Retry && !st.Failure.NextAt.Equal(noon.Add(tc.delay)) {
				t.Errorf("next at %s", st.Failure.NextAt)
			}
			if tc.second && (st.Second.Text != "custom broke" || st.Second.Decision != tc.verb) {
				t.Errorf("second failure %+v", st.Second)
			}
			if len(j.answers) != 0 {
				t.Errorf("an answer stays for the next delivery: %v", j.answers)
			}
		})
	}
	j := testDecider(t, "custom:x")
	j.keep(nixie.ID{1}, answer{verb: nixie.Discard})
	j.forget(nixie.ID{1})
	if st := j.Decide(delivery(2, 2), j.policy("").Diagnose(delivery(2, 2), broken, policy.Attempt{}), noon); st.Verb != nixie.Bury {
		t.Errorf("a stale answer counts: %s", st.Verb)
	}
}

func TestDefaultJob(t *testing.T) {
	for path, want := range map[string]string{
		"/data/orders.jsonl": "orders-", "/data/.hidden": ".hidden-", "/a b/ö \"x\":,\n.tar.gz": "---x----.tar-", "/": "-",
		"/" + strings.Repeat("n", 300) + ".csv": strings.Repeat("n", 60) + "-",
	} {
		got := DefaultJob(path)
		if !strings.HasPrefix(got, want) || len(got) != len(want)+8 {
			t.Errorf("%q: %q, want %q and 8 digits", path, got, want)
		}
	}
	if DefaultJob("/a/x.csv") == DefaultJob("/b/x.csv") {
		t.Error("a job is not named after the path of its list")
	}
}

func FuzzDefaultJob(f *testing.F) {
	for _, path := range []string{"", "/", "/a/b.c", "/\xff", "/-", "/a/queue:x"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		job := DefaultJob(path)
		if err := nixie.CheckName("job", job); err != nil {
			t.Fatal(err)
		}
		text := filter.Text(nixie.Filter{Queues: []string{job}})
		if text != "queue:"+job {
			t.Fatalf("%q has to be quoted in a filter: %s", job, text)
		}
	})
}

func FuzzReadCustom(f *testing.F) {
	for _, text := range []string{"", " ", "true", "true a  b", "sh -c 'x'", "tr\\ue", "$HOME/x", "true \x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readCustom(text)
		if err != nil {
			if nixie.CodeOf(err) != nixie.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		if !utf8.ValidString(text) {
			return // what is no character is no blank, and strings.Map below would replace it
		}
		if len(c.args) == 0 || c.path == "" || strings.Join(c.args, "") != strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text) {
			t.Fatalf("%q became %q", text, c.args)
		}
	})
}
