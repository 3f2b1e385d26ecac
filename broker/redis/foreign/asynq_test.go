//go:build unix

package foreign

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// buildAsynqjobs builds the program of asynq, which is a module of its own.
var buildAsynqjobs = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "asynqjobs")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "..", "internal", "proof", "asynqjobs")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build asynqjobs: %w\n%s", err, out)
	}
	return program, nil
})

func asynqjobs(t *testing.T) string {
	t.Helper()
	program, err := buildAsynqjobs()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A task that a server of asynq archived is adopted with what is known of it, once. It goes back
// as it was or with a new payload, and a worker of asynq runs it.
func TestRealAsynq(t *testing.T) {
	t.Parallel()
	l := &libraries[slices.IndexFunc(libraries, func(l library) bool { return l.name == "asynq" })]
	p := l.scene(t, "")
	for _, id := range []string{"kept", "changed", "raced"} {
		p.act("enqueue", id, `{"n":7}`)
	}
	archived := func(want string) bool { return p.act("archived") == want }
	before := time.Now().Truncate(time.Second)
	p.working("the deaths", func() bool { return archived("3") })
	c, cfg := p.c, p.config()
	o := newOffice(t)
	if n, again := o.adopt(c, cfg), o.adopt(c, cfg); n != 3 || again != 0 || !archived("3") {
		t.Fatalf("%d adopted, then %d, %s are dead", n, again, p.dead())
	}
	letters := map[string]nixie.Letter{}
	for _, l := range o.letters() {
		letters[l.Message.Origin.MessageID] = l
	}
	letter := letters["kept"]
	m, f := &letter.Message, letter.History[0]
	if m.Queue != "mails" || string(m.Body) != `{"n":7}` || m.Attempts != 1 || m.Header(headerType) != "mail" ||
		m.Header("job-header") != "trace: t1" || f.Text != `boom {"n":7}` || f.Type != "" || f.Stack != "" ||
		!m.Origin.Timestamp.IsZero() || letter.DiedAt.Before(before) {
		t.Errorf("%+v", letter)
	}
	p.act("retry", "raced") // by its own tool
	if err := o.redrive(c, cfg, nil, letters["raced"])[0]; nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("a task that is not archived goes: %v", err)
	}
	o.mustRedrive(c, cfg, letters["kept"])
	change := func(d *redrive.Destination) {
		d.Transform = func(_ context.Context, r *broker.Returning) error {
			r.Value = []byte(`{"n":8}`)
			return nil
		}
	}
	if err := o.redrive(c, cfg, change, letters["changed"])[0]; err != nil {
		t.Error(err)
	}
	if !archived("0") {
		t.Errorf("%s are dead", p.dead())
	}
	run(t, c, [][]any{{"SET", "fixed", "1"}})
	ran := func() []string { return c.LRange(t.Context(), "ran", 0, -1).Val() }
	p.working("the runs", func() bool { return len(ran()) == 3 })
	for _, want := range []string{`kept {"n":7} t1`, `changed {"n":8} t1`, `raced {"n":7} t1`} {
		if !slices.Contains(ran(), want) {
			t.Errorf("%q did not run: %v", want, ran())
		}
	}
	if left := readAll(t, c, cfg); len(left) != 0 {
		t.Errorf("%d are dead", len(left))
	}
}

// A message of asynq keeps the fields that we do not know.
func TestAsynqKeepsUnknownFields(t *testing.T) {
	msg := []byte("\x0a\x01t\x12\x02{}\xa2\x06\x03new\x28\x05") // type, payload, field 100, retry
	got := asynqWith(msg, []byte("[1]"))
	if want := "\x0a\x01t\xa2\x06\x03new\x28\x05\x12\x03[1]"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := asynqWith(msg, []byte("{}")); string(got) != string(msg) {
		t.Errorf("the same payload gives %q", got)
	}
}
