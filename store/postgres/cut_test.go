package postgres_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// wire is a proxy before the server that cuts a connection at a byte.
type wire struct {
	url    string
	listen net.Listener
	server string

	mu    sync.Mutex
	left  int  // bytes until the cut; −1: none is planned
	back  bool // those of the answers count, else those of the questions
	whole int  // bytes that passed in that direction since it was planned
	asks  int  // questions until the cut; −1: none is planned
	deaf  bool // that question is still handed on, and its answer is lost
	all   sync.WaitGroup
}

// newWire makes a proxy on a socket of its own.
func newWire(t *testing.T) *wire {
	t.Helper()
	server.Need(t)
	u, err := url.Parse(server.URL)
	must(t, err)
	folder := u.Query().Get("host")
	if folder == "" {
		t.Skip("the server that is given has no socket in a folder")
	}
	dir, err := os.MkdirTemp("", "nixie-wire-") //nolint:usetesting // the name of a socket has to be short
	must(t, err)
	w := &wire{url: "postgres://nixie@/postgres?pool_max_conns=2&host=" + url.QueryEscape(dir), server: filepath.Join(folder, ".s.PGSQL.5432"), left: -1, asks: -1}
	w.listen, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	must(t, err)
	w.all.Go(w.serve)
	t.Cleanup(func() {
		must(t, w.listen.Close())
		w.all.Wait()
		must(t, os.RemoveAll(dir))
	})
	return w
}

func (w *wire) serve() {
	for {
		client, err := w.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		cut := sync.OnceFunc(func() { _ = client.Close(); _ = server.Close() })
		w.all.Go(func() { defer cut(); w.pass(server, client, false) })
		w.all.Go(func() { defer cut(); w.pass(client, server, true) })
	}
}

// pass copies bytes until the cut.
func (w *wire) pass(to io.Writer, from io.Reader, back bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		n, over := w.count(n, back)
		if !back && n > 0 && w.asked(&n) {
			over = true
		}
		if _, werr := to.Write(buffer[:n]); werr != nil || err != nil || over {
			return
		}
	}
}

// count says how many of n bytes still pass.
func (w *wire) count(n int, back bool) (pass int, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if back != w.back {
		return n, false
	}
	w.whole += n
	if w.left < 0 || n < w.left {
		w.left -= min(n, max(w.left, 0))
		return n, false
	}
	pass, w.left = w.left, -1
	return pass, true
}

// asked reports whether this question is the one at which the connection is cut.
func (w *wire) asked(n *int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks > 0 {
		w.asks--
	}
	if w.asks != 0 {
		return false
	}
	w.asks = -1
	if !w.deaf {
		*n = 0
	}
	return true
}

// cutAt cuts at a question, before it is handed on or before it is answered. It
// reports whether the cut that was planned before has happened.
func (w *wire) cutAt(question int, deaf bool) (happened bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	happened = w.asks < 0
	w.asks, w.deaf = question, deaf
	return happened
}

// plan cuts after so many bytes of one direction, never for −1.
func (w *wire) plan(left int, back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.back, w.whole = left, back, 0
}

// passed is how many bytes passed since the plan.
func (w *wire) passed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

// TestConnectionCutAnywhere cuts the connection of a call at one byte after the
// other, of what is asked and of what is answered. Whatever the call says is true:
// done, not done, or nobody knows.
func TestConnectionCutAnywhere(t *testing.T) {
	w := newWire(t)
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	truth, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	defer func() { must(t, truth.Close()) }()
	s, err := postgres.Open(t.Context(), w.url, postgres.Options{Schema: schema})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	enqueue := func(key string) error {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key, Body: []byte("body")})
		return err
	}
	must(t, enqueue("first")) // all statements are known to the connection then
	answers := map[nixie.Code]int{}
	for _, back := range []bool{false, true} {
		w.plan(-1, back)
		must(t, enqueue(fmt.Sprintf("whole %v", back)))
		whole := w.passed()
		for cut := 0; cut < whole; cut += max(1, whole/60) {
			key := fmt.Sprintf("%v %d", back, cut)
			w.plan(cut, back)
			told := enqueue(key)
			w.plan(-1, back)
			answers[nixie.CodeOf(told)]++
			there, _, err := truth.Messages(t.Context(), nixie.Filter{Keys: []string{key}}, store.Page{})
			must(t, err)
			switch code := nixie.CodeOf(told); {
			case code == nixie.CodeOutcomeUnknown:
			case code == "" && len(there) == 1, code == nixie.CodeUnavailable && len(there) == 0:
			default:
				t.Errorf("cut at byte %d of %d, answers %v: told %v (%s), and %d messages are there", cut, whole, back, told, code, len(there))
			}
			must(t, enqueue("after "+key)) // the store goes on by itself
		}
	}
	if answers[nixie.CodeOutcomeUnknown] == 0 || answers[nixie.CodeUnavailable] == 0 {
		t.Errorf("the cuts were not everywhere: %v", answers)
	}
	sound(t, truth)
}
