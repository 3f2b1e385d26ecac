package rabbitmq

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	base := Address{Hosts: []string{"h:5672"}, VHost: "/"}
	with := func(change func(*Address)) Address {
		a := base
		change(&a)
		return a
	}
	for text, want := range map[string]Address{
		"rabbitmq://h":                          base,
		"rabbitmq://h/":                         base,
		"rabbitmq://h/orders":                   with(func(a *Address) { a.Queue = "orders" }),
		"rabbitmq://h/a%2Fb%20c.d":              with(func(a *Address) { a.Queue = "a/b c.d" }),
		"rabbitmq://h/q?vhost=shop":             with(func(a *Address) { a.Queue, a.VHost = "q", "shop" }),
		"amqp://h":                              base,
		"amqp://h//":                            base,
		"amqp://h/%2F?queue=q":                  with(func(a *Address) { a.Queue = "q" }),
		"amqp://h/shop?queue=a.b":               with(func(a *Address) { a.Queue, a.VHost = "a.b", "shop" }),
		"rabbitmq://ann:p%40s@h:1/q":            {Hosts: []string{"h:1"}, VHost: "/", Queue: "q", User: "ann", Password: "p@s"},
		"rabbitmqs://h/q?ca=a":                  {Hosts: []string{"h:5671"}, VHost: "/", Queue: "q", TLS: true, CA: "a"},
		"amqps://[::1]:5,b/v?cert=c&cert_key=k": {Hosts: []string{"[::1]:5", "b:5671"}, VHost: "v", TLS: true, Cert: "c", Key: "k"},
		"rabbitmq://h/q?key=header:x":           with(func(a *Address) { a.Queue, a.KeyHeader = "q", "x" }),
	} {
		if got, err := ParseURL(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"http://h/q":                               "rabbitmq://host:5672/queue",
		"rabbitmq://":                              "host of rabbitmq is",
		"rabbitmq://h:x/q":                         "host of rabbitmq is",
		"rabbitmq://h:70000/q":                     "port of rabbitmq is",
		"rabbitmq://h,/q":                          "host of rabbitmq is",
		"rabbitmq://h/a/b":                         "queue of rabbitmq is",
		"amqp://h/a/b":                             "virtual host of rabbitmq is",
		"rabbitmq://h/q?queue=x":                   `parameter "queue"`,
		"amqp://h/q?vhost=x":                       `parameter "vhost"`,
		"rabbitmq://h/q?key=x":                     "key of rabbitmq is",
		"rabbitmq://h/q?vhost=":                    "vhost of rabbitmq is empty",
		"rabbitmq://h/q?cert=x":                    "belong together",
		"rabbitmq://a%zz:secret@h/q":               "write %25",
		"rabbitmq://h/" + strings.Repeat("q", 256): "queue has 256 bytes",
	} {
		_, err := ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	a, _ := ParseURL("rabbitmqs://ann:secret@h,i/a%2Fb?vhost=s/t")
	if got := a.String(); got != "rabbitmqs://h:5671,i:5671/a%2Fb?vhost=s%2Ft" {
		t.Error(got)
	}
	if again, err := ParseURL(a.String()); err != nil || again.Queue != a.Queue || again.VHost != a.VHost {
		t.Errorf("%+v, %v", again, err)
	}
}
