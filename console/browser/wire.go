package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// flags make a browser quiet: it asks no host by itself, offers nothing, and slows nothing that is
// not in front.
var flags = []string{
	"--headless", "--remote-debugging-pipe", "--enable-automation", "--hide-scrollbars", "--mute-audio", "--no-first-run",
	"--no-default-browser-check", "--no-proxy-server", "--disable-background-networking", "--disable-breakpad",
	"--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync", "--metrics-recording-only",
	"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
	"--disable-hang-monitor", "--disable-popup-blocking", "--disable-prompt-on-repost", "--disable-ipc-flooding-protection",
	"--disable-features=Translate", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--password-store=basic",
	"--use-mock-keychain",
}

// grace bounds how long a browser may take to end.
const grace = 5 * time.Second

// wire speaks DevTools, the protocol of a Chromium, over two pipes. Each message is JSON and ends
// with a zero byte. Who called gets the answer, and who hears a session its events.
type wire struct {
	folder  string // of all that the program writes
	program *exec.Cmd
	ended   chan struct{} // closed when the program has said its last

	writing sync.Mutex
	to      *os.File

	mu      sync.Mutex
	calls   int64
	calling map[int64]chan<- said
	hearing map[string]func(method string, params json.RawMessage)
}

// object has the parameters of a call.
type object map[string]any

// said is an answer, or an event, which has a method and no ID.
type said struct {
	ID             int64
	SessionID      string
	Method         string
	Params, Result json.RawMessage
	Error          *struct{ Message string }
}

// startWire starts a program of Chromium, which has answered when it returns.
func startWire(ctx context.Context, program string) (*wire, error) {
	folder, err := os.MkdirTemp("", "nixie-browser-")
	if err != nil {
		return nil, err
	}
	w := &wire{folder: folder, ended: make(chan struct{}), calling: map[int64]chan<- said{},
		hearing: map[string]func(string, json.RawMessage){}}
	if err := w.start(ctx, program); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	ctx, end := context.WithTimeout(ctx, Patience)
	defer end()
	if err := w.call(ctx, "", "Browser.getVersion", nil, nil); err != nil {
		log, _ := os.ReadFile(w.log()) // it may have written nothing
		return nil, errors.Join(fmt.Errorf("%w; it wrote %s", err, log), w.close(ctx))
	}
	return w, nil
}

func (w *wire) log() string { return filepath.Join(w.folder, "log") }

func (w *wire) start(ctx context.Context, program string) error {
	log, err := os.Create(w.log())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the program writes it
	theirs, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close() //nolint:errcheck // the program reads it
	from, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, to.Close())
	}
	defer answers.Close() //nolint:errcheck // the program writes it
	args := append(flags[:len(flags):len(flags)], "--user-data-dir="+filepath.Join(w.folder, "profile"))
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // it does not start as root otherwise
	}
	w.program = exec.CommandContext(ctx, program, args...)
	w.program.Stdout, w.program.Stderr, w.program.ExtraFiles = log, log, []*os.File{theirs, answers}
	if err := w.program.Start(); err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	w.to = to
	go w.read(from)
	return nil
}

// read hands out what the program says, until it ends.
func (w *wire) read(from *os.File) {
	defer close(w.ended)
	defer from.Close() //nolint:errcheck // it was only read
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var s said
		if err := json.Unmarshal(text[:len(text)-1], &s); err != nil {
			return // no browser speaks so
		}
		w.mu.Lock()
		to, hear := w.calling[s.ID], w.hearing[s.SessionID]
		w.mu.Unlock()
		switch {
		case s.Method != "" && hear != nil:
			hear(s.Method, s.Params)
		case s.Method == "" && to != nil:
			to <- s
		}
	}
}

// hear gives the events of a session to a function, which must not call.
func (w *wire) hear(session string, to func(method string, params json.RawMessage)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hearing[session] = to
}

// call calls a method in a session and decodes its result, unless that is nil.
func (w *wire) call(ctx context.Context, session, method string, params object, result any) error {
	answer := make(chan said, 1)
	w.mu.Lock()
	w.calls++
	id := w.calls
	w.calling[id] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calling, id)
	}()
	call := object{"id": id, "method": method}
	if params != nil {
		call["params"] = params
	}
	if session != "" {
		call["sessionId"] = session
	}
	text, err := json.Marshal(call)
	if err != nil {
		return err
	}
	w.writing.Lock()
	_, err = w.to.Write(append(text, 0))
	w.writing.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case s := <-answer:
		if s.Error != nil {
			return fmt.Errorf("%s: %s", method, s.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(s.Result, result)
	case <-w.ended:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// close ends the program and removes its files.
func (w *wire) close(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, grace)
	defer end()
	_ = w.call(ctx, "", "Browser.close", nil, nil) // it may be gone
	select {
	case <-w.ended:
	case <-ctx.Done():
	}
	_ = w.program.Process.Kill() // as a rule it has ended
	_ = w.program.Wait()
	_ = w.to.Close()
	<-w.ended
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		err := os.RemoveAll(w.folder) // its children may still write
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
