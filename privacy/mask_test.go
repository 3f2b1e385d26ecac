package privacy

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name       string
		rule       Rule
		text, want string
	}{
		{"pattern", Pattern(regexp.MustCompile(`cust-\d+`)), "cust-12 and cust-3 left", "*** and *** left"},
		{"pattern with groups", Pattern(regexp.MustCompile(`name=(\w+) age=(\d+)`)), "name=ann age=7; name=bob age=8",
			"name=*** age=***; name=*** age=***"},
		{"pattern that matches nothing", Pattern(regexp.MustCompile(`x*`)), "abc", "abc"},
		{"values", Values("hunter2", "hunter2hunter2", "short", ""), "hunter2 hunter2hunter2 short", "*** *** short"},
		{"environment", Environment([]string{"DB_PASSWORD=swordfish", "PWD=/srv/ann/x", "TOKEN_TYPE=bearerbearer", "API_TOKEN=short",
			"HOME=/srv/ann", "X_SECRET=$REFERENCE"}),
			"swordfish in /srv/ann/x, bearerbearer short $REFERENCE", "*** in /srv/ann/x, bearerbearer short $REFERENCE"},
		{"cards", Cards, "card 4111 1111 1111 1111 and 5500-0000-0000-0004, 378282246310005", "card ***1111 and ***0004, ***0005"},
		{"no cards", Cards, "4111111111111112 0000000000000000 123 v4111111111111111 41111111111111111111111",
			"4111111111111112 0000000000000000 123 v4111111111111111 41111111111111111111111"},
	} {
		if got := c.rule(c.text); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

func TestMaskText(t *testing.T) {
	mask := Mask{Secrets, func(s string) string { return strings.ReplaceAll(s, "Ann", Hidden) }}
	if got := mask.Text("Ann has password=hunter2"); got != "*** has password=***" {
		t.Errorf("got %q", got)
	}
	if got := Mask(nil).Text("password=hunter2"); got != "password=hunter2" {
		t.Errorf("no mask hides: %q", got)
	}
	failing := Mask{func(string) string { panic("a defect") }}
	if got := failing.Text("password=hunter2"); got != withheld {
		t.Errorf("a rule that fails lets %q through", got)
	}
}

func TestMaskHeader(t *testing.T) {
	mask := Mask{Secrets}
	for _, c := range [...][3]string{
		{"Authorization", "Bearer x", Hidden}, {"cookie", "a=b", Hidden}, {"X-Api-Key", "abc", Hidden}, {"x-csrf-token", "abc", Hidden},
		{"request-id", "r-1", "r-1"}, {"idempotency-key", "k-1", "k-1"}, {"reply-to", "amqp://u:hunter2@h", "amqp://u:***@h"},
		{"authorization", "", ""},
	} {
		if got := mask.Header(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %q became %q, want %q", c[0], c[1], got, c[2])
		}
	}
	if got := Mask(nil).Header("authorization", "x"); got != "x" {
		t.Errorf("no mask hides a header: %q", got)
	}
}

// Every text that comes from the error is masked, and nothing else changes. Slices that the failure
// shares with others are not written to.
func TestMaskFailure(t *testing.T) {
	const leak = "password=hunter2"
	context, attached := []string{leak}, []nixie.Attachment{
		{Name: "stderr", Data: []byte("try\n" + leak + "\n")},
		{Name: "stdout", Data: []byte(leak), Truncated: 9},
		{Name: "dump", Data: []byte("\x00" + leak)},
	}
	f := nixie.Failure{Text: leak, Type: leak, Context: context, Stack: leak, Step: leak, LogLocation: leak, Attachments: attached,
		Worker: "w", Node: "n", Steps: []string{"s"}, Reason: nixie.ReasonAuth}
	mask := Mask{Secrets}
	mask.Failure(&f)
	const hidden = "password=***"
	want := nixie.Failure{Text: hidden, Type: hidden, Context: []string{hidden}, Stack: hidden, Step: hidden, LogLocation: hidden,
		Attachments: []nixie.Attachment{
			{Name: "stderr", Data: []byte("try\n" + hidden + "\n")},
			{Name: "stdout", Data: []byte(hidden), Truncated: 9},
			{Name: "dump", Data: []byte("\x00" + leak)},
		},
		Worker: "w", Node: "n", Steps: []string{"s"}, Reason: nixie.ReasonAuth}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	if context[0] != leak || string(attached[0].Data) != "try\n"+leak+"\n" {
		t.Error("slices of others were written to")
	}
	mask.Failure(&f)
	if !reflect.DeepEqual(f, want) {
		t.Errorf("masking twice changes it: %+v", f)
	}
}
