package cli

import (
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// defaultLimit is the --limit of a list.
const defaultLimit = 50

// lookupGarbage lets a command that looks something up collect garbage early, in percent of its
// live memory: the programs that work on the same machine need the memory more.
const lookupGarbage = 30

// visit opens the office over the existing store, and closes it after do.
func (g *globals) visit(do func(*office.Office) error) error {
	return g.visitStore(app.Options{MustExist: true, Clock: g.Now}, do)
}

// thrifty makes the process collect garbage early from its first collection on. A command that does
// little ends before that, at no cost.
func thrifty() {
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, lookupGarbage)
}

func (g *globals) visitStore(opts app.Options, do func(*office.Office) error) error {
	thrifty()
	return g.withStore(opts, func(st store.Store) error {
		o, err := office.New(office.Config{Store: st, Actor: config.Actor(g.Env), Clock: g.Now})
		if err != nil {
			return err
		}
		return do(o)
	})
}

// withStore opens a store, and closes it after do.
func (g *globals) withStore(opts app.Options, do func(store.Store) error) (err error) {
	st, err := g.open(opts)
	if err != nil {
		return err
	}
	defer func() {
		if closing := st.Close(); err == nil {
			err = closing
		}
	}()
	return do(st)
}

// sayCoverage tells when counts cover only a part of the letters.
func (g *globals) sayCoverage(l *store.Coverage) {
	if l != nil {
		g.say("about the newest %d of %s that may match: --all looks at each", l.Newest, plural(l.Of, "letter"))
	}
}

// list prints a page of rows, or all, and tells how to see the next page. A view is only valid
// until the next one.
func list[T, V any](g *globals, p *pageFlags, noun string, columns []column[V], view func(*T) V,
	everything iter.Seq2[T, error], page func(store.Page) ([]T, string, error)) error {
	if p.all || p.limit == 0 {
		return rows(g, noun, columns, func(yield func(V, error) bool) {
			for row, err := range everything {
				if !yield(view(&row), err) {
					return
				}
			}
		})
	}
	out := newListing(g, columns)
	cursor, looked, began := p.cursor, int64(0), g.Now()
	left := p.limit
	for cut := false; left > 0 && !cut; {
		rows, next, err := page(store.Page{Limit: min(left, listStep), Cursor: cursor, Scanned: &looked})
		if err != nil {
			return err
		}
		for i := range rows {
			if err := out.add(view(&rows[i])); err != nil {
				return err
			}
		}
		// A store cuts a page short when it has scanned many rows, and may find the rest soon.
		cut = next == "" || len(rows) < min(left, listStep) && g.Now().Sub(began) >= searchLimit
		left -= len(rows)
		cursor = next
	}
	if cursor != "" && left > 0 {
		return g.searched(out.close(), out.n, looked, noun, cursor)
	}
	if err := g.ended(out.close(), out.n, noun); err != nil || cursor == "" {
		return err
	}
	g.say("there may be more: --cursor %s, or --all", cursor)
	return nil
}

// searchLimit bounds a search that does not fill its page.
const searchLimit = 2 * time.Second

// searched reports a search that did not scan everything. When it found nothing the exit code says
// that there may be more.
func (g *globals) searched(err error, found int, looked int64, noun, cursor string) error {
	if err != nil {
		return err
	}
	to := g.Err
	if g.forPeople() {
		to = g.Out
	}
	fmt.Fprintf(to, "looked at the newest %d %s, %d match; there may be more: --cursor %s, or --all\n", looked, noun, found, escape(cursor))
	if found == 0 {
		return exit(ExitPartly)
	}
	return nil
}

// listStep is the number of rows that are read at a time.
const listStep = 1_000

// ended tells people that a list is empty, if there is a noun for its rows.
func (g *globals) ended(err error, n int, noun string) error {
	if err == nil && n == 0 && noun != "" && g.forPeople() {
		g.say("no %s", noun)
	}
	return err
}

// say prints a line for people on standard error.
func (g *globals) say(format string, args ...any) {
	fmt.Fprintln(g.Err, escape(fmt.Sprintf(format, args...)))
}

// typed writes a command to be typed, on the same store. Words that need quotes have them already.
func (g *globals) typed(words ...string) string {
	return g.self() + " " + strings.Join(words, " ") + g.storeFlag()
}
