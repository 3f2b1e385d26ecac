package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// counted counts the questions to a store.
type counted struct {
	*memory.Store
	queues, counts atomic.Int64
	wait           atomic.Pointer[func()] // is called by each question
}

func (s *counted) Queues(ctx context.Context, q store.QueueQuery) ([]store.QueueInfo, error) {
	s.queues.Add(1)
	s.takes()
	return s.Store.Queues(ctx, q)
}

func (s *counted) Count(ctx context.Context, f nixie.Filter, of store.Counting) ([][]store.Group, store.Coverage, error) {
	s.counts.Add(1)
	s.takes()
	return s.Store.Count(ctx, f, of)
}

func (s *counted) takes() {
	if wait := s.wait.Load(); wait != nil {
		(*wait)()
	}
}

// watching is a console in a bubble of time.
type watching struct {
	t       *testing.T
	store   *counted
	office  *office.Office
	handler http.Handler
	pass    func(time.Duration) // lets time pass
}

// watch calls test with a console over one letter that died of a cause.
func watch(t *testing.T, test func(t *testing.T, w *watching)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		clock := func() time.Time { return noon.Add(time.Since(began)) }
		w := &watching{t: t, store: &counted{Store: memory.New(memory.Options{Clock: clock})}, pass: time.Sleep}
		var err error
		if w.office, err = office.New(office.Config{Store: w.store, Actor: "ann", Clock: clock}); err != nil {
			t.Fatal(err)
		}
		w.handler = console.Handler(w.office, console.Options{Clock: clock, Zone: time.UTC})
		w.die("orders")
		test(t, w)
		synctest.Wait()
	})
}

// died numbers the letters of all tests.
var died atomic.Int64

func (w *watching) die(queue string) {
	w.t.Helper()
	l := letter(int(died.Add(1)), queue, "timeout: slow", "slow", 0)
	if _, errs := w.office.Adopt(w.t.Context(), []nixie.Letter{l}, "the test"); errs[0] != nil {
		w.t.Fatal(errs[0])
	}
}

// waits lets each question to the store take a while.
func (w *watching) waits(do func()) { w.store.wait.Store(&do) }

// look asks for a page with a version, as who has read it some milliseconds ago.
func (w *watching) look(path, version, age string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Nixie-Live", version)
	r.Header.Set("Nixie-Age", age)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// get asks for a page as a browser does that opens it.
func (w *watching) get(ctx context.Context, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return answer
}

// has fails the test if a page lacks a text.
func (w *watching) has(path, text string) {
	w.t.Helper()
	if body := w.get(w.t.Context(), path).Body.String(); !strings.Contains(body, text) {
		w.t.Errorf("%s does not say %q:\n%s", path, text, body)
	}
}

// is fails the test if an answer is another one. A header that is "" is not compared.
func (w *watching) is(what string, answer *httptest.ResponseRecorder, status int, version, age string) {
	w.t.Helper()
	live, old := answer.Header().Get("Nixie-Live"), answer.Header().Get("Nixie-Age")
	if answer.Code != status || version != "" && live != version || age != "" && old != age {
		w.t.Errorf("%s: status %d, version %q, age %q; want %d, %q, %q", what, answer.Code, live, old, status, version, age)
	}
}

func version(answer *httptest.ResponseRecorder) string { return answer.Header().Get("Nixie-Live") }

func TestManyWhoWatchAskTheStoreOnce(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		had := version(w.look("/", "none", ""))
		w.die("orders")
		w.pass(10 * time.Second)
		counts := w.store.counts.Load()
		w.get(t.Context(), "/")
		alone := w.store.counts.Load() - counts // what one page costs
		if alone == 0 {
			t.Fatal("a page asks for no counts")
		}
		counts = w.store.counts.Load()
		queues := w.store.queues.Load()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if answer := w.look("/", had, ""); answer.Code != http.StatusOK || version(answer) == had {
					t.Errorf("status %d, version %s after %s", answer.Code, version(answer), had)
				}
			})
		}
		all.Wait()
		if got := w.store.counts.Load() - counts; got != alone {
			t.Errorf("10 who watch ask for counts %d times, one page does %d times", got, alone)
		}
		if got := w.store.queues.Load() - queues; got > 4 { // one look, and one page
			t.Errorf("10 who watch ask for queues %d times", got)
		}
	})
}

// Two addresses of one page differ by their query: each is kept for itself.
func TestAPageIsKeptByItsQuery(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		w.die("mail")
		for _, queue := range []string{"orders", "mail", "orders", "mail"} {
			body := w.look("/letters?filter=queue:"+queue, "none", "").Body.String()
			if !strings.Contains(body, `/queue?name=`+queue+`"`) || strings.Count(body, `/queue?name=`) != 1 {
				t.Errorf("the letters of %s are:\n%s", queue, body)
			}
		}
	})
}

// The store is looked at anew after 10 s, however long a look waits.
func TestALookThatWaitsComesAsOften(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		w.waits(func() { w.pass(1500 * time.Millisecond) })
		had := version(w.look("/queues", "none", ""))
		if had == "" {
			w.pass(time.Second)
			had = version(w.look("/queues", "none", ""))
		}
		w.die("orders")
		answer := w.look("/queues", had, "")
		next, err := time.ParseDuration(answer.Header().Get("Nixie-Next") + "ms")
		if err != nil || next <= 0 || next >= 8500*time.Millisecond {
			t.Fatalf("the next look is in %s (%v)", next, err)
		}
		w.pass(next - time.Millisecond)
		queues := w.store.queues.Load()
		if answer := w.look("/queues", had, ""); answer.Code != http.StatusNoContent || w.store.queues.Load() != queues {
			t.Errorf("status %d, and the store was asked %d times", answer.Code, w.store.queues.Load()-queues)
		}
		w.pass(time.Millisecond)
		answer = w.look("/queues", had, "") // the look answers in time, the page does not
		w.is("while the page is made", answer, http.StatusNoContent, "", "")
		w.pass(2 * time.Second)
		if answer := w.look("/queues", had, ""); answer.Code != http.StatusOK || version(answer) == had {
			t.Errorf("status %d, version %s after %s", answer.Code, version(answer), had)
		}
	})
}

// A look that takes 200 ms of a processor is followed by another one after 20 s.
func TestProcessorTimeMakesLooksRare(t *testing.T) {
	if console.ThreadTime() == 0 {
		t.Skip("the processor time of a thread is not known here")
	}
	watch(t, func(t *testing.T, w *watching) {
		w.waits(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for began := console.ThreadTime(); console.ThreadTime()-began < 200*time.Millisecond; {
			}
		})
		had := version(w.look("/operations", "none", "")) // asks for no queues
		queues := w.store.queues.Load()
		w.pass(20 * time.Second)
		w.look("/operations", had, "")
		if w.store.queues.Load() != queues {
			t.Error("the store was looked at before 20 s")
		}
		w.pass(10 * time.Second)
		w.look("/operations", had, "")
		if w.store.queues.Load() == queues {
			t.Error("the store was not looked at within 30 s")
		}
	})
}

// While an operation runs, of this console or of another program, the store is looked at each 3 s.
func TestAnOperationIsFollowedEach3Seconds(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		had := version(w.look("/operations", "none", ""))
		work := &office.OperationRequest{Event: office.OnHold, Reason: "asked"}
		op, err := w.office.Begin(t.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		began := w.look("/operations", had, "")
		w.is("an operation began", began, http.StatusOK, "", "0")
		if _, err := w.office.Run(t.Context(), op.Operation, work); err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Second)
		ended := w.look("/operations", version(began), "")
		w.is("it ended", ended, http.StatusOK, "", "0")
		w.pass(3 * time.Second)
		w.is("3 s later", w.look("/operations", version(ended), ""), http.StatusNoContent, version(ended), "0")
		w.pass(9 * time.Second)
		w.is("9 s later", w.look("/operations", version(ended), ""), http.StatusNoContent, version(ended), "9000")
	})
}

// A page that takes long is answered as it was, with its age; who has it gets nothing. It then is
// there for all.
func TestAPageThatTakesLongIsAnsweredAsItWas(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		had := version(w.look("/letters", "none", ""))
		w.die("mail")
		w.pass(10 * time.Second)
		w.store.wait.Store(nil)
		w.waits(func() { w.pass(7 * time.Second) })
		if answer := w.look("/queues", "none", ""); answer.Code != http.StatusNoContent { // the look takes long
			t.Errorf("status %d while the store is looked at", answer.Code)
		}
		w.pass(6 * time.Second)
		w.is("who has the page", w.look("/letters", had, ""), http.StatusNoContent, "", "")
		newcomer := w.look("/letters", "none", "")
		w.is("who has an older page", newcomer, http.StatusOK, had, "22000")
		if strings.Contains(newcomer.Body.String(), "mail") {
			t.Error("the page that was has a letter that died since")
		}
		w.is("who has a newer page", w.look("/letters", "none", "100"), http.StatusNoContent, "", "")
		w.pass(7 * time.Second)
		w.store.wait.Store(nil)
		if answer := w.look("/letters", had, ""); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "mail") {
			t.Errorf("status %d, and the page is:\n%s", answer.Code, answer.Body)
		}
	})
}

// A browser opens a page, and then asks whether there is a newer one: what others watched before is
// older, and is not shown to it.
func TestAPageNeverGoesBack(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		w.look("/letters", "none", "")
		w.pass(5 * time.Second)
		w.die("mail")
		w.pass(time.Second)
		answer := w.look("/letters", "none", "500")
		if w.is("a page of half a second ago", answer, http.StatusOK, "", "0"); !strings.Contains(answer.Body.String(), "mail") {
			t.Errorf("the page lacks what it had:\n%s", answer.Body)
		}
	})
}

// deaf is a client that takes nothing until it is released.
type deaf struct {
	http.ResponseWriter
	released chan struct{}
	deadline time.Time
}

func (d *deaf) Write(p []byte) (int, error) {
	<-d.released
	return len(p), nil
}

func (d *deaf) SetWriteDeadline(at time.Time) error {
	d.deadline = at
	return nil
}

// A client that does not read delays no other, and has 30 s.
func TestNothingWaitsForAClientThatDoesNotRead(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		client := &deaf{ResponseWriter: httptest.NewRecorder(), released: make(chan struct{})}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Nixie-Live", "none")
		go w.handler.ServeHTTP(client, r)
		synctest.Wait()
		if left := time.Until(client.deadline); left != 30*time.Second {
			t.Errorf("it has %s to read", left)
		}
		began := time.Now()
		for range 3 {
			w.die("orders")
			w.pass(10 * time.Second)
			w.is("another client", w.look("/", "none", ""), http.StatusOK, "", "0")
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the others were answered after %s", took)
		}
		close(client.released)
	})
}

// Searches read letters one by one, and one runs at a time. Who goes away before it begins reads
// nothing.
func TestOneSearchRunsAtATime(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		var now, most, all atomic.Int64
		w.waits(func() {
			most.Store(max(most.Load(), now.Add(1)))
			all.Add(1)
			w.pass(900 * time.Millisecond)
			now.Add(-1)
		})
		gone, leave := context.WithCancel(t.Context())
		var persons sync.WaitGroup
		answers := make(chan *httptest.ResponseRecorder, 20)
		for range cap(answers) {
			persons.Go(func() { answers <- w.get(t.Context(), "/letters?filter=text:slow") })
		}
		synctest.Wait()
		persons.Go(func() { w.get(gone, "/letters?filter=text:gone") })
		synctest.Wait()
		leave()
		began := time.Now()
		code := w.get(t.Context(), "/letters?filter=queue:orders").Code
		if took := time.Since(began); code != http.StatusOK || took != 900*time.Millisecond {
			t.Errorf("a list that needs no search: status %d after %s", code, took)
		}
		persons.Wait()
		close(answers)
		told, refused := 0, 0
		for answer := range answers {
			switch body := answer.Body.String(); {
			case answer.Code == http.StatusServiceUnavailable && strings.Contains(body, "One search runs at a time"):
				refused++
			case strings.Contains(body, "this one waited"):
				told++
			}
		}
		if told != 10 || refused != 8 || most.Load() != 2 || all.Load() != 13 { // the list above is one of the two
			t.Errorf("%d waited, %d did not begin; %d questions in all, %d at the same time", told, refused, all.Load(), most.Load())
		}
	})
}

// A person who searches goes before searches that are watched, but for one that runs. Those that
// are not asked for any more read nothing.
func TestPersonsSearchBeforePagesThatAreWatched(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		w.look("/", "none", "")
		var all atomic.Int64
		w.waits(func() { all.Add(1); w.pass(4 * time.Second) })
		var watched sync.WaitGroup
		for _, text := range []string{"a", "b", "c", "d", "e", "f"} {
			watched.Go(func() { w.look("/letters?filter=text:"+text, "none", "") })
		}
		synctest.Wait()
		began := time.Now()
		if code := w.get(t.Context(), "/letters?filter=text:slow").Code; code != http.StatusOK || time.Since(began) != 8*time.Second {
			t.Errorf("status %d after %s", code, time.Since(began))
		}
		watched.Wait()
		w.pass(time.Minute)
		if all.Load() != 3 { // one before the person, and one that began within 10 s
			t.Errorf("%d questions in all", all.Load())
		}
	})
}

func TestNothingIsSentWhileNothingChanges(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		had := version(w.look("/letters", "none", ""))
		for range 5 {
			w.pass(10 * time.Second)
			counts := w.store.counts.Load()
			w.is("nothing changes", w.look("/letters", had, ""), http.StatusNoContent, had, "0")
			if got := w.store.counts.Load() - counts; got > 0 {
				t.Errorf("the store was asked for %d counts", got)
			}
		}
		w.pass(10 * time.Second) // pages have ages
		w.is("after a minute", w.look("/letters", had, ""), http.StatusOK, "", "0")
	})
}

func TestWatchingEndsWithTheStore(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		if answer := w.look("/", "none", ""); answer.Code != http.StatusServiceUnavailable || version(answer) != "" {
			t.Errorf("status %d, version %q", answer.Code, version(answer))
		}
		if answer := w.look("/audit", "none", ""); answer.Code != http.StatusServiceUnavailable { // it is not live
			t.Errorf("status %d of a page that is not live", answer.Code)
		}
	})
}

// A page that panics does so for who asked, and the next one is made anew.
func TestAPageThatPanicsEndsNothing(t *testing.T) {
	watch(t, func(t *testing.T, w *watching) {
		had := version(w.look("/letters", "none", ""))
		w.die("orders")
		w.pass(10 * time.Second)
		w.look("/", had, "")
		w.waits(func() { panic("a bug") })
		func() {
			defer func() {
				if cause, _ := recover().(string); !strings.HasPrefix(cause, "a bug\n") {
					t.Errorf("who asked gets %q", cause)
				}
			}()
			w.look("/letters", had, "")
		}()
		w.store.wait.Store(nil)
		w.is("the next one", w.look("/letters", had, ""), http.StatusOK, "", "")
	})
}
