package histories

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"sync"

	"github.com/nixie-go/nixie"
)

// request and response are the lines between a client and its process.
type request struct {
	Number int
	Call   Call
}

type response struct {
	Number int
	Answer Answer
}

// Serve does what comes in until there is no more, and closes the client. A
// process that stands for a client calls it.
func Serve(in io.Reader, out io.Writer, c Client) error {
	lines := bufio.NewReader(in)
	to := json.NewEncoder(out)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // also a cut line
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		wg.Go(func() {
			a := response{r.Number, c.Do(r.Call)}
			mu.Lock()
			defer mu.Unlock()
			_ = to.Encode(a) // no client listens to the answer of a process that is killed
		})
	}
	wg.Wait()
	return c.Close()
}

// remote is a client in a process of its own.
type remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	end sync.WaitGroup // of the goroutine that listens

	mu      sync.Mutex
	ended   bool
	number  int
	waiting map[int]chan Answer
}

// Process starts a command that calls [Serve] on its standard streams, as a
// client.
func Process(cmd *exec.Cmd) (Client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &remote{cmd: cmd, in: in, waiting: map[int]chan Answer{}}
	r.end.Go(func() { r.listen(out) })
	return r, nil
}

// listen hands answers out. When the process is gone, no client knows what became of
// the calls that are still open.
func (r *remote) listen(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var a response
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err != nil {
			break
		}
		r.mu.Lock()
		r.waiting[a.Number] <- a.Answer
		delete(r.waiting, a.Number)
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, c := range r.waiting {
		c <- Answer{Code: nixie.CodeOutcomeUnknown, Text: "the process ended"}
	}
	r.waiting = nil
}

// Do implements Client.
func (r *remote) Do(c Call) Answer {
	answer, sent := r.send(c)
	if !sent {
		return Answer{Code: nixie.CodeUnavailable, Text: "the process has ended"}
	}
	return <-answer
}

func (r *remote) send(c Call) (answer chan Answer, sent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, false
	}
	r.number++
	answer = make(chan Answer, 1)
	line, err := json.Marshal(request{r.number, c})
	if err != nil {
		answer <- Answer{Code: nixie.CodeInternal, Text: err.Error()}
		return answer, true
	}
	r.waiting[r.number] = answer
	_, _ = r.in.Write(append(line, '\n')) // the listener answers for a process that is gone
	return answer, true
}

// Close implements Client.
func (r *remote) Close() error {
	err := r.in.Close()
	r.end.Wait()
	return errors.Join(err, r.cmd.Wait())
}

// Kill implements Client.
func (r *remote) Kill() error {
	err := r.cmd.Process.Kill()
	r.end.Wait()
	_ = r.cmd.Wait() // it was killed, which is no success
	_ = r.in.Close()
	return err
}
