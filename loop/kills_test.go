//go:build unix

package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// The kill table: a worker is killed at each of its points, or its store is, and no request is lost
// and none gets two answers. That is so whether or not there is a mailbox for the answer.
//
//	sqlite    The store is in the process of its worker, so both are killed at once. A killed store
//	          also loses power: it goes on with what its disk had synced.
//	postgres  The server is killed and started again; its worker goes on. At the reply the
//	          transaction waits in the server, with the settlement written and not the reply.
//	redis     Likewise. The mailbox is a [loop.Over], without transactions.
//
// A call whose store is killed after it has succeeded is not answered.
func TestKillTable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for on, start := range map[string]func(*testing.T) scene{"sqlite": sqliteScene, "postgres": postgresScene, "redis": redisScene} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for _, killsStore := range []bool{false, true} {
				s.column(t, cells(on, killsStore))
			}
		})
	}
}

// cells are the kills of a worker, or of a store.
func cells(on string, killsStore bool) (list []*cell) {
	for _, point := range []string{atReceive, atProcess, atBury, atReply, atAcknowledge} {
		for _, after := range []bool{false, true} {
			for _, gone := range []bool{false, true} {
				for _, bad := range []bool{false, true} {
					c := &cell{On: on, Point: point, After: after, Gone: gone, Bad: bad, Store: killsStore}
					if c.happens() {
						c.Name = fmt.Sprintf("cell%d-", len(list))
						if c.waitsInServer() {
							c.Name = "held-" + c.Name
						}
						if killsStore {
							c.Name += "store-"
						}
						list = append(list, c)
					}
				}
			}
		}
	}
	return list
}

// happens reports whether a worker comes to the point of the cell.
func (c *cell) happens() bool {
	switch c.Point {
	case atReceive:
		return c.After && !c.Bad // before it nothing is there to be lost
	case atProcess:
		return !c.After && !c.Bad
	case atBury:
		return c.Bad
	case atReply:
		inTransaction := c.On != "redis" // which is neither before nor after
		return (c.After || !inTransaction) && !(c.Bad && c.Gone)
	}
	return !c.Bad
}

// String names a cell.
func (c *cell) String() string {
	side := map[bool]string{false: "before", true: "after"}[c.After]
	switch {
	case c.Point == atProcess:
		side = "during"
	case c.Point == atReply && c.On != "redis":
		side = "within"
	}
	request := map[bool]string{false: "a result", true: "an error"}[c.Bad]
	return fmt.Sprintf("%-8s  %-6s killed  %-6s %-11s  %-8s  target %-5s", c.On, map[bool]string{false: "worker", true: "store"}[c.Store],
		side, c.Point, request, map[bool]string{false: "there", true: "gone"}[c.Gone])
}

// scene has what the cells on one of them share.
type scene struct {
	address func(t *testing.T) string // for a cell
	kill    func() error              // kills the store and starts it again; nil: it dies with its worker
	held    *held                     // transactions that wait in the server; nil: none does
}

// column plays cells at once: each has a worker of its own, and all are at their points when they,
// or their store, are killed.
func (s *scene) column(t *testing.T, list []*cell) {
	workers, runs := make([]*child.Process, len(list)), make([]int, len(list))
	s.held.begin(t)
	waiting := 0
	for i, c := range list {
		c.Address = s.address(t)
		send(t, c)
		workers[i] = child.Start(t, "kills", string(must(json.Marshal(c))(t)))
	}
	for i, c := range list {
		if c.waitsInServer() {
			waiting++
			continue
		}
		for s.line(t, c, workers[i])[0] != saysHere {
			runs[i]++
		}
	}
	s.held.wait(t, waiting)
	workersGoOn := s.kill != nil && list[0].Store
	if workersGoOn {
		must(0, s.kill())(t)
	} else {
		for i := range workers {
			runs[i] += ran(workers[i].Kill())
		}
	}
	s.held.end(t, workersGoOn)
	var all sync.WaitGroup
	outcomes := make([]outcome, len(list))
	for i, c := range list {
		if workersGoOn && !c.waitsInServer() {
			workers[i].GoOn()
		}
		all.Go(func() {
			outcomes[i] = c.end(t, workersGoOn)
			if workersGoOn {
				runs[i] += ran(workers[i].Kill())
			}
		})
	}
	all.Wait()
	for i, c := range list {
		outcomes[i].runs += runs[i]
		outcomes[i].check(t, c)
	}
}

// line waits for what a worker says.
func (s *scene) line(t *testing.T, c *cell, w *child.Process) []string {
	select {
	case words, open := <-w.Lines:
		if open {
			return words
		}
		t.Fatalf("%s: the worker has ended", c)
	case <-time.After(patience):
		t.Fatalf("%s: the worker did not come there", c)
	}
	return nil
}

// patience bounds each wait of the kill table.
const patience = 30 * time.Second

func ran(lines [][]string) (n int) {
	for _, words := range lines {
		if words[0] == saysRan {
			n++
		}
	}
	return n
}

// send makes the mailboxes of a cell and sends its request.
func send(t *testing.T, c *cell) {
	for _, name := range []string{"requests-dlq", "answers-dlq"} {
		_, end, err := box[json.RawMessage, struct{}](c, name, nil)
		must(0, err)(t)
		must(0, end())(t)
	}
	if c.Gone {
		c.close(t)
	} else {
		_, end, err := box[result, struct{}](c, "answers", nil)
		must(0, err)(t)
		must(0, end())(t)
	}
	requests, end, err := box[request, result](c, "requests", nil)
	must(0, err)(t)
	text := map[bool]string{false: "good", true: "bad"}[c.Bad]
	must(requests.Send(ctx, request{Request: text, RequestID: "r-1"}, loop.ReplyTo(c.Name+"answers")))(t)
	must(0, end())(t)
}

// outcome counts what became of a request.
type outcome struct {
	runs, letters, notices int      // notices: in the mailbox of dead requests
	answers                []string // also those in the mailbox of dead answers
}

// end waits until the request of a cell has ended. It works itself unless its worker goes on.
func (c *cell) end(t *testing.T, goesOn bool) (o outcome) {
	if c.On == "sqlite" && c.Store {
		c.Address = filepath.Join(c.Address, afterwards)
	}
	requests, end, err := box[request, result](c, "requests", nil)
	if err != nil {
		t.Error(err)
		return o
	}
	defer func() { must(0, end())(t) }()
	work, stop := context.WithTimeout(ctx, patience)
	done := make(chan error, 1)
	if goesOn {
		done <- nil
	} else {
		l := must(answering(c, requests, func() { o.runs++ }))(t)
		go func() { done <- l.Run(work) }()
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for left := 1; left > 0 && err == nil; {
		select {
		case <-look.C:
			left, err = requests.ApproximateCount(work)
		case <-work.Done():
			err = fmt.Errorf("the request waits still: %w", work.Err())
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Errorf("%s: %v", c, err)
	}
	o.notices = len(received[loop.DeadLetter[json.RawMessage]](t, c, "requests-dlq"))
	if c.Gone {
		for _, l := range received[loop.DeadLetter[result]](t, c, "answers-dlq") {
			o.answers = append(o.answers, text(l.Body))
		}
	} else {
		for _, r := range received[result](t, c, "answers") {
			o.answers = append(o.answers, text(r))
		}
	}
	o.letters = letters(t, c)
	return o
}

func text(r result) string {
	if r.Error != "" {
		return r.Error
	}
	return fmt.Sprint(r.Output)
}

// received returns all that is in a mailbox.
func received[T any](t *testing.T, c *cell, name string) (all []T) {
	m, end, err := box[T, struct{}](c, name, nil)
	must(0, err)(t)
	defer func() { must(0, end())(t) }()
	for {
		got := must(m.Receive(ctx, loop.Max(loop.MaxReceive)))(t)
		if len(got) == 0 {
			return all
		}
		for _, one := range got {
			all = append(all, one.Body)
		}
	}
}

// letters counts the letters of a cell. A channel may have one twice.
func letters(t *testing.T, c *cell) int {
	if c.On == "redis" {
		p := must(redis.Connect(redis.Address{Servers: []string{c.Address}}))(t)
		defer p.Close()
		known := map[string]bool{}
		for _, r := range must(p.Browse(ctx, c.Name+"requests.dlq", 0, 10))(t) {
			for _, h := range r.Headers {
				if h.Name == broker.HeaderLetterID {
					known[string(h.Value)] = true
				}
			}
		}
		return len(known)
	}
	st, end, err := open(c, nil)
	must(0, err)(t)
	defer func() { must(0, end())(t) }()
	queues := must(st.Queues(ctx, store.QueueQuery{Names: []string{c.Name + "requests"}}))(t)
	if len(queues) != 1 {
		t.Fatalf("%s: there are %d queues of requests", c, len(queues))
	}
	return int(queues[0].Dead)
}

// check prints a cell, and checks what has to hold in each: the request is done or a letter, and
// its sender hears of it once. If there is no mailbox for a result, that one is a dead letter; an
// error is in the letter of the request.
func (o *outcome) check(t *testing.T, c *cell) {
	letters, answers, begins := 0, 1, "42"
	if c.Bad {
		letters, begins = 1, "Dead-lettered after "
	}
	if c.Bad && c.Gone {
		answers = 0
	}
	good := o.letters == letters && o.notices == letters && len(o.answers) == answers
	for _, a := range o.answers {
		good = good && strings.HasPrefix(a, begins)
	}
	line := fmt.Sprintf("%s  ran %d times, %d letters, answers %q", c, o.runs, o.letters, o.answers)
	if good {
		t.Log(line)
	} else {
		t.Errorf("%s, %d dead letters", line, o.notices)
	}
}

// close closes the mailbox for answers. In Redis there is none anyway.
func (c *cell) close(t *testing.T) {
	if c.On == "redis" {
		return
	}
	st, end, err := open(c, nil)
	must(0, err)(t)
	must(0, store.Configure(ctx, st, c.Name+"answers", nixie.QueueSettings{Closed: true}, "ada", "moved"))(t)
	must(0, end())(t)
}

func sqliteScene(*testing.T) scene {
	return scene{address: func(t *testing.T) string { return t.TempDir() }}
}

func redisScene(t *testing.T) scene {
	own := testservers.OwnRedis(t)
	return scene{address: func(*testing.T) string { return own.Addr }, kill: func() error { return own.Kill(ctx) }}
}

func postgresScene(t *testing.T) scene {
	own := testservers.OwnPostgres(t)
	must(0, must(postgres.Open(ctx, own.URL, postgres.Options{}))(t).Close())(t)
	s := scene{address: func(*testing.T) string { return own.URL }, kill: own.Kill, held: &held{url: own.URL}}
	s.held.connect(t)
	must(s.held.c.Exec(ctx, heldHere))(t)
	return s
}

// held makes transactions wait in a server of PostgreSQL, right after they have inserted an answer.
type held struct {
	url string
	c   *pgx.Conn
}

const heldHere = `
create function held_here() returns trigger language plpgsql as $$ begin
  if (select name from nixie.queue where n = new.queue) ~ '^held.*-answers' then
    perform pg_advisory_xact_lock_shared(19);
  end if;
  return new;
end $$;
create trigger held_here after insert on nixie.message for each row execute function held_here()`

func (c *cell) waitsInServer() bool { return c.On == "postgres" && c.Point == atReply }

func (h *held) connect(t *testing.T) { h.c = must(pgx.Connect(ctx, h.url))(t) }

func (h *held) begin(t *testing.T) {
	if h != nil {
		must(h.c.Exec(ctx, "select pg_advisory_lock(19)"))(t)
	}
}

// wait waits until n transactions do.
func (h *held) wait(t *testing.T, n int) {
	for there := -1; h != nil && there < n; {
		must(0, h.c.QueryRow(ctx, "select count(*) from pg_locks where locktype = 'advisory' and not granted").Scan(&there))(t)
	}
}

// end lets them go on, if the server still knows them.
func (h *held) end(t *testing.T, killed bool) {
	switch {
	case h == nil:
	case killed:
		_ = h.c.Close(ctx) // with an error, because the server was killed
		h.connect(t)
	default:
		must(h.c.Exec(ctx, "select pg_advisory_unlock(19)"))(t)
	}
}
