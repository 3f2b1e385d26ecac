package office

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie/store"
)

// maxBlocked limits the blocked streams of a queue that a report counts.
const maxBlocked = 1_000

// blocked counts the streams of a queue that dead messages block, and the messages behind them.
type blocked struct {
	queue    string
	streams  int
	messages int64        // that wait behind dead ones
	example  store.Stream // the first of these
	more     bool         // there are more than maxBlocked
}

// blocked counts the streams of a queue in which messages wait behind a dead one.
func (o *Office) blocked(ctx context.Context, q *store.QueueInfo) (blocked, error) {
	b := blocked{queue: q.Name}
	streams := o.store.Features().Streams
	if q.Dead == 0 || q.Blocked+q.Scheduled == 0 || !q.Settings.Ordered() || streams == nil {
		return b, nil
	}
	list, _, err := streams.Streams(ctx, store.StreamQuery{Queue: q.Name}, store.Page{Limit: maxBlocked})
	for i := range list {
		if list[i].State != store.StreamBlocked || list[i].Followers == 0 {
			continue
		}
		if b.streams == 0 {
			b.example = list[i]
		}
		b.streams++
		b.messages += list[i].Followers
	}
	b.more = b.streams == maxBlocked
	return b, err
}

func (b blocked) String() string { return b.text(ForCommands) }

func (b blocked) text(w Wording) string {
	least := ""
	if b.more {
		least = "at least "
	}
	return fmt.Sprintf("%s%s blocked by a dead message, %s waiting", least, w.count(int64(b.streams), "stream"),
		w.count(b.messages, "message"))
}

func (b blocked) fix(w Wording) string {
	return w.say("see {stream}; redrive or discard the letter, or {unblock}", b.queue, b.example.Name)
}
