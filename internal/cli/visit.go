package cli

import (
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// defaultLimit is how many rows a list shows.
const defaultLimit = 50

// visitorsGarbage is how much garbage a command that looks may hold, in percent of what it
// needs: it answers once, and beside others that have the memory to work with.
const visitorsGarbage = 30

// visit opens the office over the store that is there, and closes it after.
func (g *globals) visit(do func(*office.Office) error) error {
	return g.visitStore(app.Options{MustExist: true, Clock: g.Now}, do)
}

func (g *globals) visitStore(opts app.Options, do func(*office.Office) error) (err error) {
	debug.SetGCPercent(visitorsGarbage)
	st, err := g.open(opts)
	if err != nil {
		return err
	}
	defer func() {
		if closing := st.Close(); err == nil {
			err = closing
		}
	}()
	o, err := office.New(office.Config{Store: st, Actor: config.Actor(g.Env), Clock: g.Now})
	if err != nil {
		return err
	}
	return do(o)
}

// filterFlag is --filter.
type filterFlag struct {
	text   string
	filter nixie.Filter
}

func (f *filterFlag) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.text, "filter", "", `choose by key:value terms, such as 'reason:timeout age:>1h text:"no route"'`)
}

func (f *filterFlag) read(g *globals) (err error) {
	f.filter, err = filter.Parse(f.text, g.Now())
	return err
}

// reasonFlag is --reason of what is done to queues and streams.
type reasonFlag struct{ text string }

func (r *reasonFlag) register(fs *pflag.FlagSet) {
	fs.StringVar(&r.text, "reason", "", "why; recorded in the audit (required)")
}

func (r *reasonFlag) read(*globals) error {
	if strings.TrimSpace(r.text) == "" {
		return usagef("--reason is empty: say why, it is recorded in the audit")
	}
	return nil
}

// queuesFlag is --queue of commands that look at some queues.
type queuesFlag struct{ names []string }

func (q *queuesFlag) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&q.names, "queue", nil, "of these queues (default all)")
}

func (*queuesFlag) read(*globals) error { return nil }

// pageFlags are --limit, --all and --cursor.
type pageFlags struct {
	limit  int
	all    bool
	cursor string
}

func (p *pageFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&p.limit, "limit", defaultLimit, "rows to show; 0 is all")
	fs.BoolVar(&p.all, "all", false, "show all rows")
	fs.StringVar(&p.cursor, "cursor", "", "go on where a list ended")
}

func (p *pageFlags) read(*globals) error {
	if p.limit < 0 {
		return usagef("--limit is %d: give a positive number, or 0 for all", p.limit)
	}
	return nil
}

// lookFlag asks for counts of all letters, however long it takes.
type lookFlag struct{ all bool }

func (*lookFlag) read(*globals) error { return nil }

func (l *lookFlag) register(fs *pflag.FlagSet) {
	fs.BoolVar(&l.all, "all", false, "look at all letters that may match, however long it takes")
}

func (l *lookFlag) word() store.Scan {
	if l.all {
		return store.ScanAll
	}
	return store.ScanRecent
}

// lookedAt says it when counts are not about all letters.
func (g *globals) lookedAt(l *store.Coverage) {
	if l != nil {
		g.say("about the newest %d of %s that may match: --all looks at each", l.Newest, plural(l.Of, "letter"))
	}
}

// list prints a page of rows, or all, and says how to see the next page. A view
// may be used until the next.
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
		// A store that cuts a page short has looked at much, and may find the rest soon.
		cut = next == "" || len(rows) < min(left, listStep) && g.Now().Sub(began) >= listPatience
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

// listPatience is how long a search goes on that has not filled its page.
const listPatience = 2 * time.Second

// searched tells of a search that did not look at everything. One that found nothing must
// not be taken for one that knows that there is nothing.
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

// listStep is how many rows are read at a time.
const listStep = 1_000

// ended says it when a list for people is empty, unless the noun is.
func (g *globals) ended(err error, n int, noun string) error {
	if err == nil && n == 0 && noun != "" && g.forPeople() {
		g.say("no %s", noun)
	}
	return err
}

// say writes a line for people to the error stream.
func (g *globals) say(format string, args ...any) {
	fmt.Fprintln(g.Err, escape(fmt.Sprintf(format, args...)))
}

// typed writes a command that can be typed, on the same store. The words are
// joined as they are: those that need it have been quoted.
func (g *globals) typed(words ...string) string {
	return "nixie " + strings.Join(words, " ") + g.storeFlag()
}
