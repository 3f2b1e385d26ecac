package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// writeEdits gives redriven messages their new expiries and what operators replaced in them, and
// keeps what they were.
func (v *verb) writeEdits(c *engine.Changes) {
	for _, m := range c.Renewed {
		v.run("update @.message set expires = $2 where pos = $1", m.Pos, m.Expires)
	}
	for i := range c.Edits {
		e := &c.Edits[i]
		m := e.Message
		v.rows[m.Pos].hash = m.Hash
		v.run("keep_original.sql", m.Pos, v.now, plain(e.Actor))
		v.run("update @.message set body = $2, hash = $3, headers = nullif($4, '') where pos = $1",
			m.Pos, notNull(e.Body), m.Hash[:], toJSON(len(m.Headers) == 0, m.Headers))
	}
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
