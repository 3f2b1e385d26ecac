package postgres

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// canceled implements Canceled of store.Features. An ID has the position of its message, and only a
// message that has ended has a row in the log. A look for entries in the audit costs more.
func (s *Store) canceled(ctx context.Context, ids []nixie.ID) (found []nixie.ID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.single(ctx, s.own, []stmt{{
		query: s.named("select m.id from @.log l join @.message m on m.pos = l.pos where l.state = $2 and l.pos" + which().ids),
		args:  []any{uuids(ids), lifecycle.Canceled},
		each: func(r row) error {
			var id nixie.ID
			err := r.Scan((*idColumn)(&id))
			found = append(found, id)
			return err
		},
	}})
	return found, err
}
