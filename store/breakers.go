package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Breaker is a circuit breaker of a worker that is not closed.
type Breaker struct {
	Owner  string       `json:"owner"` // the process of the worker, as [Owner] names it
	Queue  string       `json:"queue"`
	Type   string       `json:"type"`           // of the messages that it holds back
	Reason nixie.Reason `json:"reason"`         // of the failures that opened it
	State  string       `json:"state"`          // open or half-open
	Until  time.Time    `json:"until,omitzero"` // the earliest end of the state open
	Since  time.Time    `json:"since,omitzero"` // when it was closed last
}

const (
	// spaceOfBreakers has a document for each circuit breaker that is not closed.
	spaceOfBreakers = "breaker"
	// closed is the state of a breaker that holds nothing back, as policy.BreakerState says it.
	closed = "closed"
	// breakerKept limits how long a document stays of a process that was killed.
	breakerKept = 30 * 24 * time.Hour
	// maxBreakers limits how many are listed.
	maxBreakers = 1_000
)

// breakers tells of the circuit breakers of the workers on a source. Its zero value is ready. Where
// two workers of a process have the same breaker, the last to change counts.
type breakers struct {
	mu    sync.Mutex // held while a change is written: the last one that is written is the last change
	since map[DocumentKey]time.Time
}

// keep writes a change of a breaker of a process.
func (b *breakers) keep(ctx context.Context, docs Documents, owner string, c nixie.BreakerChange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", owner, c.Queue, c.Type, c.Reason))
	key := DocumentKey{spaceOfBreakers, hex.EncodeToString(name[:16])}
	change := DocumentChange{DocumentKey: key, Verb: RemoveDocument, If: AnyRevision}
	if c.State == closed {
		delete(b.since, key)
	} else {
		if b.since == nil {
			b.since = map[DocumentKey]time.Time{}
		}
		if b.since[key].IsZero() {
			b.since[key] = c.At.UTC()
		}
		change.Verb, change.Expires = PutDocument, c.At.Add(breakerKept)
		change.Value, _ = json.Marshal(Breaker{owner, c.Queue, c.Type, c.Reason, c.State, c.Until.UTC(), b.since[key]}) // it cannot fail
	}
	_, err := docs.Write(ctx, Writing{Changes: []DocumentChange{change}})
	if change.Verb == RemoveDocument && nixie.CodeOf(err) == nixie.CodeNotFound {
		return nil
	}
	return err
}

// Breakers lists the circuit breakers that are not closed, of workers in processes that have not
// ended. Owners are those of [Health]. A process of the same name as one that ended has none of it.
func Breakers(ctx context.Context, docs Documents, owners []Owner) (list []Breaker, err error) {
	if docs == nil {
		return nil, nil
	}
	began := map[string]time.Time{}
	for _, o := range owners {
		if o.Alive {
			began[o.Name] = o.StartedAt
		}
	}
	found, _, err := docs.Find(ctx, DocumentQuery{Space: spaceOfBreakers}, Page{Limit: maxBreakers})
	for i := range found {
		var b Breaker
		if json.Unmarshal(found[i].Value, &b) != nil {
			continue // one that cannot be read tells nothing
		}
		if start, alive := began[b.Owner]; alive && !found[i].At.Before(start) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(x, y Breaker) int {
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Type, y.Type),
			cmp.Compare(x.Reason, y.Reason))
	})
	return list, err
}
