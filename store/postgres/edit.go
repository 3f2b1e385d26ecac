package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// readHeaders reads the headers of messages that may be edited.
func (r *resolving) readHeaders(letters [][16]byte) {
	r.headers, r.damaged = map[int64][]nixie.Header{}, map[int64]error{}
	r.read(func(row row) error {
		var pos int64
		var text string
		if err := row.Scan(&pos, &text); err != nil {
			return err
		}
		var headers []nixie.Header
		if err := fromJSON(text, &headers); err != nil {
			r.damaged[pos] = nixie.Errorf(nixie.CodeInternal, "headers of the message at %d cannot be read: %w", pos, err)
		}
		r.headers[pos] = headers
		return nil
	}, "select pos, coalesce(headers, '') from @.message where pos"+which().letters, letters)
}

// edit gives a redriven message its new expiry and what an operator changed, and keeps what it was.
func (r *resolving) edit(l *letterRow, by *store.Resolution) {
	if at, what := lifecycle.Prolonged(l.m.expires, by, r.now); what != "" {
		r.run("update @.message set expires = $2 where pos = $1", l.pos, at)
		r.record(l.queue, by.Actor, store.OnAmend, l.ID, what)
		r.trail[len(r.trail)-1].operation = by.Operation
	}
	if by.Edit == nil {
		return
	}
	what := lifecycle.Edited(l.m.hash, r.headers[l.pos], by.Edit)
	if what == "" {
		return
	}
	r.run("keep_original.sql", l.pos, r.now, plain(by.Actor))
	l.m.hash = nixie.HashBody(by.Edit.Body)
	r.run("update @.message set body = $2, hash = $3, headers = nullif($4, '') where pos = $1",
		l.pos, notNull(by.Edit.Body), l.m.hash[:], toJSON(len(by.Edit.Headers) == 0, by.Edit.Headers))
	r.record(l.queue, by.Actor, store.OnAmend, l.ID, what)
	r.trail[len(r.trail)-1].operation = by.Operation
}

// readOriginals adds what messages of letters said before they were edited.
func (t *tx) readOriginals(list []nixie.Letter, positions []int64) {
	byNumber := map[int64]*nixie.Letter{}
	for i := range list {
		byNumber[positions[i]] = &list[i]
	}
	t.read(func(r row) error {
		var pos, at int64
		var headers string
		var o nixie.Original
		if err := r.Scan(&pos, &o.Body, (*hashColumn)(&o.Hash), &headers, &at, &o.By); err != nil {
			return err
		}
		l := byNumber[pos]
		o.At, l.Original = lifecycle.Moment(at), &o
		if nixie.HashBody(o.Body) != o.Hash {
			l.Damage = append(l.Damage, "original "+bodyDamage)
		}
		if err := fromJSON(headers, &o.Headers); err != nil {
			l.Damage = append(l.Damage, "original headers: "+err.Error())
		}
		return nil
	}, "select pos, body, hash, coalesce(headers, ''), at, by from @.original where pos = any($1)", positions)
}
