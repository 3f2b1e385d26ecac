//go:build linux

package command

import (
	"bytes"
	"strings"
	"testing"
)

// TestResident: a process gets one message after the other. Its log is that of the message, and
// what it has not read at its end is told.
func TestResident(t *testing.T) {
	t.Parallel()
	const worker = `while read -r line; do echo "log of $line" >&2; echo "got $line"; [ "$line" != 9 ] || exit 3; done`
	p, err := StartResident(Spec{Args: []string{"sh", "-c", worker}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	p.Rest() // from its start on it has a message, as it has to say that it is ready
	for _, message := range strings.Fields("1 2 3 4 5 6 7 8 9") {
		var log bytes.Buffer
		if !p.Begin(&log) {
			t.Fatal("the process takes no message")
		}
		if err := p.Write([]byte(message + "\n")); err != nil {
			t.Fatal(err)
		}
		line := <-p.Lines()
		if got := string(p.Log().Data); string(line.Text) != "got "+message || got != "log of "+message+"\n" || got != log.String() {
			t.Errorf("message %s: %q, with the log %q", message, line.Text, got)
		}
		p.Rest()
	}
	<-p.Gone()
	if result, err := p.Result(0); err != nil || result.ExitCode != 3 || p.Begin(nil) {
		t.Errorf("%+v, %v", result, err)
	}
}
