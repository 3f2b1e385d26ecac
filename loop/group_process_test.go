package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// groupMember runs a group in a process of its own, which treats requests by its role. It says the
// address of its health port, the requests that it begins, and what its group logs.
func groupMember(path, role string) error {
	var voice child.Voice
	st, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	requests, err := loop.In[request, result](st, "requests", loop.Config{Logger: quiet})
	if err != nil {
		return err
	}
	l, err := loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: requests, Worker: worker.Config{Concurrency: 1, Lease: 6 * time.Second, Logger: quiet},
		Execute: func(ctx context.Context, req request) (float64, error) {
			voice.Say("begins", req.Request)
			switch role {
			case "stuck":
				select {} // also when ctx has ended
			case "slow":
				for ctx.Err() == nil {
					loop.Beat(ctx)
					<-time.After(100 * time.Millisecond)
				}
			}
			return 42, ctx.Err()
		},
	})
	if err != nil {
		return err
	}
	port, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	said := lines(func(line string) { voice.Say("said", line) })
	g, err := loop.NewGroup(loop.GroupConfig{
		Loops: []loop.Loop{l}, Health: port, Logger: slog.New(slog.NewTextHandler(said, nil)), Dump: said,
		Watchdog: true, Threshold: 4 * time.Second, Interval: 200 * time.Millisecond, Longest: time.Second, Grace: time.Second,
	})
	if err != nil {
		return err
	}
	voice.Say("listens", port.Addr())
	return g.RunUntilSignal(ctx)
}

// lines hands each line that is written to a function.
type lines func(string)

func (say lines) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		say(strings.ReplaceAll(string(bytes.TrimRight(line, "\n")), "\t", " "))
	}
	return len(text), nil
}

// A member of a group whose process is killed leaves its work to the others. One that is stuck is
// unready, is ended by its watchdog, which says why, and is well when it was started again.
func TestR50_GroupOfProcesses(t *testing.T) {
	path := t.TempDir() + "/nixie.db"
	st := must(sqlite.Open(path, sqlite.Options{}))(t)
	defer func() { _ = st.Close() }()
	requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
	answers := must(loop.In[result, struct{}](st, "answers", loop.Config{}))(t)
	start := func(role string) (p *child.Process, health string) {
		p = child.Start(t, "group", path, role)
		health = "http://" + p.Line()[1] + "/health/"
		becomes(t, health+"ready", http.StatusOK)
		return p, health
	}
	send := func(name string) {
		must(requests.Send(ctx, request{Request: name, RequestID: name}, loop.ReplyTo("answers")))(t)
	}
	answered := func(name string) {
		t.Helper()
		m := one(t, answers, loop.Wait(loop.MaxWait))
		if m.Body.RequestID != name || m.Body.Output != 42 {
			t.Errorf("the answer to %s is %+v", name, m.Body)
		}
		if err := m.Acknowledge(ctx); err != nil {
			t.Error(err)
		}
	}

	slow, _ := start("slow")
	send("first")
	if words := slow.Line(); words[0] != "begins" {
		t.Fatal(words)
	}
	other, _ := start("well")
	slow.Kill()
	answered("first")
	if words := other.Line(); strings.Join(words, " ") != "begins first" {
		t.Errorf("the other member said %q", words)
	}
	other.Signal(os.Interrupt)
	if how := other.Died(); how != "exit status 0" {
		t.Errorf("a member that was interrupted ended with %s", how)
	}

	stuck, health := start("stuck")
	send("second")
	becomes(t, health+"ready", http.StatusServiceUnavailable)
	becomes(t, health+"live", http.StatusOK)
	var said []string
	for words := range stuck.Lines {
		said = append(said, strings.Join(words, " "))
	}
	if how := stuck.Died(); how != "signal: killed" {
		t.Errorf("a member that is stuck ended with %s", how)
	}
	all := strings.Join(said, "\n")
	for _, part := range []string{"level=ERROR+4 msg=\"watchdog ends the process\"", "loop requests has not beaten for", "groupMember"} {
		if !strings.Contains(all, part) {
			t.Errorf("its last words are not about %s:\n%s", part, all)
		}
	}
	_, health = start("well")
	answered("second")
	becomes(t, health+"ready", http.StatusOK)
	if n := must(answers.ApproximateCount(ctx))(t); n != 0 {
		t.Errorf("%d answers are left", n)
	}
}

// becomes waits until a health port answers with a code.
func becomes(t *testing.T, url string, code int) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for last := ""; ; {
		answer, err := client.Get(url)
		if err != nil {
			t.Fatalf("%s: %v; the last answer was %s", url, err, last)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == code {
			t.Logf("%s %d", url[strings.Index(url, "/health"):], code)
			return
		}
		last = fmt.Sprint(answer.StatusCode)
		<-time.After(20 * time.Millisecond)
	}
}
