// Package console shows an office in a browser: what needs attention, why letters died, the story
// of each, and the way back to their queues. Pages are rendered on the server, work without
// scripts, and have a URL for each of their states. A page is one file, which says its path, title,
// entry in the menu and verbs.
//
// It knows no logins of its own: without [Options.Identity] all who reach it may do what the office
// may. Mount it where only operators come, such as on a loopback address or behind a proxy that
// knows them.
package console

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// maxForm limits the bytes of a form that is sent.
const maxForm = 64 << 10

// Options configure a console. The zero value is a console at the root of a server.
type Options struct {
	Prefix string           // the path below which it is mounted, such as /ops/; default /
	Title  string           // the name of what it shows; default Nixie
	Banner string           // a sentence at the top of every page; default none
	Hosts  []string         // names by which a browser may ask a loopback address, next to localhost and IP addresses
	Mask   Mask             // hides secrets in what is shown; default none
	Clock  func() time.Time // default time.Now
	Zone   *time.Location   // of times on pages where scripts do not run; else that of the browser; default time.Local

	// Identity names who sends a request, for the audit, and says what the person may do; an empty
	// name is [None]. Default: all who reach the console act as the office does. It is called for
	// each request but those of assets, and must believe nothing that a person can send.
	Identity func(*http.Request) (name string, rights Rights)

	// Run runs an operation that goes on after the answer to the browser: it calls its argument on
	// another goroutine, with a context that ends with the program. The operation then stops
	// between two letters, and its page offers to resume it. The default is a goroutine that
	// ends with the operation.
	Run func(do func(context.Context))
}

// Mask hides secrets before a text is shown, as privacy.Mask does.
type Mask interface {
	Text(text string) string
	Header(name, value string) string
	Failure(f *nixie.Failure)
}

// console answers for an office.
type console struct {
	Options
	office   *office.Office // that of the person who asks
	rights   Rights         // of the person who asks
	shared   *office.Office // that makes pages for several
	pages    []page
	assets   map[string]asset
	runs     *runs
	live     *live
	searches *searches
	flow     *flow
	noted    *noted
}

// page is one screen.
type page struct {
	path  string // below the prefix, as in a pattern of net/http
	title string
	menu  string // the icon of its entry in the menu; "" is no entry
	file  string // its template
	live  bool   // it is kept up to date while it is open
	show  func(*console, *http.Request) (answer, error)
	verbs map[string]verb // by the last element of their path
	forms map[string]form // likewise
}

// form answers what was sent with the page itself, which keeps it, or with the address of another.
type form func(*console, *http.Request) (answer, error)

// verb does what a form asks for, and returns the address of the page that tells what happened.
type verb func(*console, *http.Request) (to string, err error)

// answer has the content of a page.
type answer struct {
	Title   string // default the title of the page
	Status  int    // of the page; 0 is 200
	Refresh int    // seconds until the browser asks again; 0 is never
	To      string // the address of another page that has the answer; "" is none
	Waited  string // how long its search waited; "" is not to speak of
	Data    any
}

// Handler returns a handler that shows an office. It panics if a page cannot be read, which only a
// change of this package can cause.
func Handler(o *office.Office, opts Options) http.Handler {
	o = o.Worded(office.ForPages)
	c := &console{Options: opts, office: o, shared: o, rights: Act, assets: readAssets(), runs: &runs{}, live: newLive(),
		searches: newSearches(), flow: &flow{}, noted: &noted{}}
	c.Prefix = "/" + strings.Trim(c.Prefix, "/")
	if c.Prefix != "/" {
		c.Prefix += "/"
	}
	if c.Title == "" {
		c.Title = "Nixie"
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Zone == nil {
		c.Zone = time.Local
	}
	if c.Mask == nil {
		c.Mask = noMask{}
	}
	if c.Run == nil {
		c.Run = func(do func(context.Context)) { go do(context.Background()) }
	}
	c.pages = screens()
	mux := http.NewServeMux()
	base := c.bases()
	trouble := base.read(page{file: "error"})
	for _, p := range c.pages {
		shown := base.read(p)
		mux.Handle("GET "+c.Prefix+p.path, c.known(trouble, func(c *console, w http.ResponseWriter, r *http.Request) {
			c.answer(w, r, p, shown[c.rights], trouble[c.rights])
		}))
		for name, do := range p.verbs {
			mux.Handle("POST "+c.Prefix+p.path+"/"+name, c.known(trouble, func(c *console, w http.ResponseWriter, r *http.Request) {
				c.act(w, r, do, trouble[c.rights])
			}))
		}
		for name, take := range p.forms {
			p := p
			p.show, p.live = take, false
			mux.Handle("POST "+c.Prefix+p.path+"/"+name, c.known(trouble, func(c *console, w http.ResponseWriter, r *http.Request) {
				r.Body = http.MaxBytesReader(w, r.Body, maxEditForm)
				if err := r.ParseForm(); err != nil {
					c.fail(w, r, trouble[c.rights], tooLarge(err))
					return
				}
				c.answer(w, r, p, shown[c.rights], trouble[c.rights])
			}))
		}
	}
	mux.HandleFunc("GET "+c.Prefix+"assets/{name}", c.asset)
	mux.Handle(c.Prefix, c.known(trouble, func(c *console, w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, trouble[c.rights], nixie.Errorf(nixie.CodeNotFound, "there is no page %q", r.URL.Path))
	}))
	return c.guard(compressed(http.NewCrossOriginProtection().Handler(mux)))
}

// compressed compresses answers for clients that take them so. The length of an answer has some
// noise, because a page shows what a URL says next to what a letter says: without it, who can send
// URLs to an operator and see lengths could guess the letter (BREACH). The noise is of a SHA-256
// sum of the page: that of a CRC has the same few values for pages that differ in a few letters.
func compressed(next http.Handler) http.Handler {
	const noise = 32 // bytes
	wrap, err := gzhttp.NewWrapper(gzhttp.RandomJitter(noise, 0, true))
	if err != nil {
		panic(err) // its options are constants
	}
	return wrap(next)
}

// screens returns all pages, in the order of the menu.
func screens() []page {
	return []page{
		officePage(), groupsPage(), groupPage(), lettersPage(), letterPage(), bodyPage(), editPage(), redrivePage(), changePage(),
		messagesPage(), messagePage(), messageBodyPage(), streamsPage(), streamPage(), retriesPage(), operationsPage(),
		operationPage(), queuesPage(), queuePage(), policiesPage(), auditPage(), settingsPage(),
	}
}

// guard sets the headers of every answer, and refuses names that point to a loopback address from
// elsewhere: a page of another site could read this one under such a name (DNS rebinding).
func (c *console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if !c.Knows(r) {
			http.Error(w, "this console does not answer to the name "+r.Host+": ask for localhost, or name it in Options.Hosts",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers are the headers of every answer.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// Knows reports whether a request names a host that is answered. On an address that is not loopback
// all are. On a loopback address these are localhost, Hosts, and every IP address: DNS rebinding
// needs a name that its attacker can point elsewhere. No browser leaves the host out.
func (o Options) Knows(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil || !local.IP.IsLoopback() || r.Host == "" {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	_, err := netip.ParseAddr(host)
	return err == nil || slices.ContainsFunc(append([]string{"localhost"}, o.Hosts...),
		func(known string) bool { return strings.EqualFold(known, host) })
}

type noMask struct{}

func (noMask) Text(text string) string          { return text }
func (noMask) Header(_ string, v string) string { return v }
func (noMask) Failure(*nixie.Failure)           {}
