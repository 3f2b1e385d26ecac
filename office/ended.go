package office

import (
	"context"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// EndedView is a generation of a message that ended, in JSON and CSV.
type EndedView struct {
	At      Timestamp   `json:"at"`
	Message nixie.ID    `json:"message"`
	Key     string      `json:"key"`
	Queue   string      `json:"queue"`
	State   nixie.State `json:"state"`
	Type    string      `json:"error_type"`
	Error   string      `json:"error"`
}

// Ended lists the generations of messages that ended, newest first: each success, discard, cancel
// and death, those before a redrive too. Of a filter it takes queues, states and times of death,
// here of the end; another field is CodeInvalid. A store that has no such list is CodeUnavailable.
func (o *Office) Ended(ctx context.Context, f nixie.Filter, p store.Page) ([]EndedView, string, error) {
	q := store.EndedQuery{Queues: f.Queues, States: f.States, At: f.Died}
	f.Queues, f.States, f.Died = nil, nil, nixie.Times{}
	if !f.IsZero() {
		return nil, "", nixie.Errorf(nixie.CodeInvalid, "the log of what ended is chosen by queue:, state: and died: only, such as "+
			"'queue:orders state:dead died:>=now-1d': nixie message list takes the other terms")
	}
	list := o.store.Features().Ended
	if list == nil {
		return nil, "", nixie.Errorf(nixie.CodeUnavailable, "this store has no log of what ended: it keeps letters only")
	}
	found, next, err := list(ctx, q, p)
	views := make([]EndedView, len(found))
	for i, e := range found {
		views[i] = EndedView{Timestamp{e.At}, e.Message, e.Key, e.Queue, e.State, e.Type, e.Text}
	}
	return views, next, err
}

// AllEnded yields all that Ended lists.
func (o *Office) AllEnded(ctx context.Context, f nixie.Filter) iter.Seq2[EndedView, error] {
	return all(false, func(p store.Page) ([]EndedView, string, error) { return o.Ended(ctx, f, p) })
}
