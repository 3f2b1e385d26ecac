package redis

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// A program in Python, with its ordinary client, sends what we receive, and receives what we send.
func TestPythonExchange(t *testing.T) {
	t.Parallel()
	f := actual(t)
	testservers.Program(t, testservers.PythonClient)
	python := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/usr/bin/python3",
			append([]string{"../../examples/mailbox/mailbox.py", "mailbox.lua", f.at.Servers[0], f.at.Mailbox}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	d := f.open(t, Config{})
	if ids := strings.Fields(python("send", "order 1", "Überweisung 2")); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("the IDs are %q", ids)
	}
	got := take(t, d, 2)
	if r := got[1]; string(r.Value) != "Überweisung 2" || string(r.Key) != "python" || header(&r, "from") != "python" ||
		r.MessageID != "2" {
		t.Errorf("%+v", r)
	}
	for _, err := range d.Ack(t.Context(), pointers(got)) {
		if err != nil {
			t.Error(err)
		}
	}
	f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("answer"), Headers: []broker.RecordHeader{{Name: "to"}}})
	var r struct {
		ID, Value string
		Key       *string
		Headers   [][2]*string
	}
	if err := json.Unmarshal([]byte(python("receive", "10")), &r); err != nil || r.ID != "3" || r.Value != "answer" || r.Key != nil ||
		len(r.Headers) != 1 || *r.Headers[0][0] != "to" || r.Headers[0][1] != nil {
		t.Errorf("%+v, %v", r, err)
	}
	f.allDone(t)
}
