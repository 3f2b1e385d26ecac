package console

import (
	"html/template"
	"net/http"

	"github.com/nixie-go/nixie"
)

// Rights say what a person may do.
type Rights int

// The rights.
const (
	None Rights = iota // nothing: each answer is 403
	Read               // look: no page has a form that changes anything, and each POST is 403
	Act                // all that the console offers
)

// known lets a person in whose name and rights are known: do gets the console of that person.
func (c *console) known(trouble templates, do func(*console, http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, err := c.person(r)
		if err == nil && r.Method == http.MethodPost && person.rights != Act {
			err = nixie.Errorf(nixie.CodeDenied, "you may look, and change nothing")
		}
		if err != nil {
			person.fail(w, r, trouble[Act], err) // it has no form
			return
		}
		do(person, w, r)
	})
}

// person returns the console of the person who sends a request.
func (c *console) person(r *http.Request) (*console, error) {
	if c.Identity == nil {
		return c, nil
	}
	person := *c
	name, rights := c.Identity(r)
	if rights != Read && rights != Act {
		person.rights = None
		return &person, nixie.Errorf(nixie.CodeDenied, "who you are is not known here, or you may do nothing")
	}
	o, err := c.office.For(name)
	if err != nil {
		person.rights = None
		return &person, nixie.Errorf(nixie.CodeDenied, "who you are is not known here: %w", err)
	}
	person.office, person.rights = o, rights
	return &person, nil
}

// everyone returns the console for what several persons with the same rights see: it names none of
// them.
func (c *console) everyone() *console {
	other := *c
	other.office = c.shared
	return &other
}

// templates are those of a page for each of the rights that see it.
type templates map[Rights]*template.Template

// bases reads what all pages have. Those who may only look have templates of their own, if there
// may be such persons: no form that changes something is in those.
func (c *console) bases() templates {
	all := templates{}
	for _, rights := range [...]Rights{Read, Act} {
		if rights == Read && c.Identity == nil {
			continue
		}
		functions := c.functions()
		functions["may"] = func() bool { return rights == Act }
		all[rights] = template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, "pages/base.html"))
	}
	return all
}

// read reads a page.
func (base templates) read(p page) templates {
	all := templates{}
	if p.file == "" {
		return all // it writes its answer itself
	}
	for rights, t := range base {
		all[rights] = template.Must(template.Must(t.Clone()).ParseFS(pageFiles, "pages/"+p.file+".html"))
	}
	return all
}

// Standing says what the reader of a page may do, and never who that is: a page has several
// readers.
func (c *console) Standing() string {
	switch {
	case c.Identity == nil:
		return "no logins: all who reach this page may do what it offers"
	case c.rights == Act:
		return "you may act, and the audit names you"
	case c.rights == Read:
		return "you may look, and change nothing"
	}
	return "you are not known here"
}
