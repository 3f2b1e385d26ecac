package console

import (
	"net/http"

	"github.com/nixie-go/nixie/office"
)

// auditShown is the number of entries on one page.
const auditShown = 100

func auditPage() page {
	return page{path: "audit", title: "Audit", menu: "audit", file: "audit", show: (*console).showAudit}
}

// auditData is one page of what operators and policy did.
type auditData struct {
	Queue, Actor string
	Entries      []office.AuditView
	Next         string
	First        bool
}

func (c *console) showAudit(r *http.Request) (answer, error) {
	d := auditData{Queue: r.FormValue("queue"), Actor: r.FormValue("actor"), First: r.FormValue("cursor") == ""}
	f := office.AuditFilter{Actor: d.Actor}
	if d.Queue != "" {
		f.Queues = []string{d.Queue}
	}
	list, next, err := c.office.Audit(r.Context(), f, office.Page{Limit: auditShown, Cursor: r.FormValue("cursor")})
	for i := range list {
		d.Entries = append(d.Entries, office.ViewAudit(&list[i]))
	}
	d.Next = next
	return answer{Data: d}, err
}
