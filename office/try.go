package office

import (
	"context"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
)

// Dead narrows a filter to letters whose message is dead and was not given up, unless the filter
// names statuses.
func Dead(f nixie.Filter) nixie.Filter {
	if len(f.Statuses) == 0 {
		f.Statuses = []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	}
	return f
}

// NoCopy says why no copy of a letter can be tried; "" means that one can.
func NoCopy(l *nixie.Letter) string {
	if from := l.Message.Origin; from != nil && from.BodyAt != "" {
		return fmt.Sprintf("its body is elsewhere, at %s of %s, and was not fetched", from.BodyAt, from.System)
	}
	return ""
}

// OfJob reports whether queues are jobs of a list: they keep the key of each item for ever.
func (o *Office) OfJob(ctx context.Context, queues []Count) (bool, error) {
	for _, q := range queues {
		set, err := o.QueueSettings(ctx, q.Value)
		if err != nil || set.DedupeScope != nixie.DedupeEver {
			return false, err
		}
	}
	return len(queues) > 0, nil
}

// LetterByID returns a letter whole.
func (o *Office) LetterByID(ctx context.Context, id nixie.ID) (nixie.Letter, error) {
	return readWhole(ctx, "letter", id, o.store.Letters)
}

// Tried notes in the audit of each queue that a command is tried on copies of these letters. It is
// called before the command runs, because what the command does is real.
func (o *Office) Tried(ctx context.Context, letters []nixie.Letter, command string) error {
	tried := o.store.Features().Tried
	if tried == nil {
		return nixie.Errorf(nixie.CodeUnavailable, "this store keeps no audit, and a try has to leave an entry there: "+
			"take the letters into another store with nixie dlq import")
	}
	var queues []Count
	counts := map[string]int64{}
	for i := range letters {
		counts[letters[i].Message.Queue]++
	}
	queues = sortedCounts(counts)
	for _, q := range queues {
		said := strings.ToValidUTF8(fmt.Sprintf("%d copied for: %s", q.Count, command), "?")
		if err := tried(ctx, q.Value, o.actor, said[:min(len(said), nixie.MaxReason)]); err != nil {
			return err
		}
	}
	return nil
}
