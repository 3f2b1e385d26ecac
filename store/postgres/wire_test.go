package postgres_test

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// wire is a proxy before the server that cuts a connection at a byte, or passes
// nothing on from there, without a word.
type wire struct {
	url    string
	listen net.Listener
	server string

	mu    sync.Mutex
	left  int  // bytes until the cut; −1: none is planned
	back  bool // those of the answers count, else those of the questions
	mute  bool // no cut: the connection stays, and nothing passes any more
	whole int  // bytes that passed in that direction since it was planned
	hung  []*connection
	open  []*connection // all that came
	asks  int           // questions until the cut; −1: none is planned
	deaf  bool          // that question is still handed on, and its answer is lost
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
	w := &wire{url: "postgres://nixie@/postgres?pool_max_conns=2&host=" + url.QueryEscape(dir),
		server: filepath.Join(folder, ".s.PGSQL.5432"), left: -1, asks: -1}
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
		c := &connection{client: client, server: server}
		w.mu.Lock()
		w.open = append(w.open, c)
		w.mu.Unlock()
		w.all.Go(func() { w.pass(c, server, client, false) })
		w.all.Go(func() { w.pass(c, client, server, true) })
	}
}

// connection is one through the proxy.
type connection struct {
	client, server net.Conn
	mute           atomic.Bool
}

func (c *connection) close() { _, _ = c.client.Close(), c.server.Close() }

// pass copies bytes until the cut. Of a mute connection it reads on, so that it
// sees who leaves.
func (w *wire) pass(c *connection, to io.Writer, from io.Reader, back bool) {
	defer c.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		over := false
		if c.mute.Load() {
			n = 0
		} else if n, over = w.count(n, back); over && w.mute {
			over = false
			w.hang(c)
		}
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

// silence makes all connections mute that there are, until the next plan.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		c.mute.Store(true)
	}
	w.hung = append(w.hung, w.open...)
	w.open = nil
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

// hang makes a connection mute until the next plan.
func (w *wire) hang(c *connection) {
	c.mute.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hung = append(w.hung, c)
}

// plan cuts after a number of bytes of one direction, never for −1. Those that are mute
// end, as they do when a server notices.
func (w *wire) plan(left int, back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.hung {
		c.close()
	}
	w.hung = nil
	w.left, w.back, w.whole = left, back, 0
}

// passed counts the bytes that passed since the plan.
func (w *wire) passed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

// questions are those that were asked since a cut was planned at that one.
func (w *wire) questions(at int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return at - w.asks
}
