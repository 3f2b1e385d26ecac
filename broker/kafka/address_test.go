package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"kafka://h":                              "kafka://h:9092 [] false",
		"kafka://h:1,[::1]:2,i/t":                "kafka://h:1,[::1]:2,i:9092/t [] false",
		"kafka://[::1],::2,10.0.0.1,b_1.x-y":     "kafka://[::1]:9092,[::2]:9092,10.0.0.1:9092,b_1.x-y:9092 [] false",
		"kafka://u:p%40@h/t?tls=true":            "kafka://h:9092/t [plain u p@] true",
		"kafka://u@h/t?sasl=scram-sha-512&ca=/x": "kafka://h:9092/t [scram-sha-512 u ] true",
	} {
		a, err := ParseURL(text)
		login := []string{}
		if a.SASL != "" {
			login = []string{a.SASL, a.User, a.Password}
		}
		if got := fmt.Sprintf("%s %s %v", a, login, a.TLS); err != nil || got != want {
			t.Errorf("%s: %s, want %s, %v", text, got, want, err)
		}
	}
	for text, want := range map[string]string{
		"h/t": "does not begin with kafka://", "kafka://": "host of the broker is empty", "kafka://h,/t": "host of the broker is empty",
		"kafka://0[0": `host of the broker is "0[0"`, "kafka://[h": `host of the broker is "[h"`,
		"kafka://a b": `host of the broker is "a b"`, "kafka://[::1": "host of the broker",
		"kafka://h:x": `port of the broker "h:x" is "x"`, "kafka://h:0": "port of the broker", "kafka://h:65536": "port of the broker",
		"kafka://h:":    "port of the broker",
		"kafka://h/a/b": "topic of the broker", "kafka://h/t?x=1": `parameter "x"`, "kafka://h/t?tls=yes": "tls of the broker",
		"kafka://h/t?sasl=gssapi": "sasl of the broker", "kafka://u:secret%zz@h/t": "user or password",
	} {
		if _, err := ParseURL(text); nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"kafka://u@h": "needs a user and a password", "kafka://h?ca=/no/such/file": "ca of the broker",
		"kafka://h?cert=/a": "cert and key of the broker belong together",
	} {
		a, err := ParseURL(text)
		if err == nil {
			_, err = a.Options()
		}
		if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	a := Address{}
	a.Login("ann", "p")
	if a.SASL != saslPlain || a.User != "ann" || a.Password != "p" {
		t.Errorf("%+v", a)
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("kafka://u:p@h:1,i/t?sasl=plain&tls=true")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseURL(text)
		if err != nil {
			return
		}
		again, err := ParseURL(a.String())
		if err != nil || fmt.Sprint(again.Seeds, again.Topic) != fmt.Sprint(a.Seeds, a.Topic) {
			t.Fatalf("%q: %v, then %v, %v", text, a, again, err)
		}
	})
}
