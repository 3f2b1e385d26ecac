package office

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// maxRetryingRead limits the messages among which [Office.NextRetries] looks for the next ones.
const maxRetryingRead = 1_000

// RetryingView shows a message that failed and waits for its next attempt.
type RetryingView struct {
	MessageView
	Most  int       // attempts of its queue's policy; −1 is no limit. Workers may have a policy of their own
	DueAt Timestamp // of the next attempt; in the past it is due
}

// NextRetries lists up to limit messages that wait for their next attempt, the next one first. If
// more than 1,000 wait, it lists the next ones of the newest 1,000, and says that there are more.
func (o *Office) NextRetries(ctx context.Context, queues []string, limit int) (list []RetryingView, more bool, err error) {
	infos, err := o.queues(ctx, queues)
	if err != nil {
		return nil, false, err
	}
	once := int64(1)
	f := nixie.Filter{Queues: queues, States: []nixie.State{nixie.Queued}, Attempts: nixie.Range{Min: &once}}
	records, more, err := o.firstMessages(ctx, f, maxRetryingRead)
	if err != nil {
		return nil, false, err
	}
	records = slices.DeleteFunc(records, func(r store.Record) bool { return !r.Retrying() })
	slices.SortStableFunc(records, func(a, b store.Record) int { return a.NotBefore.Compare(b.NotBefore) })
	policies := map[string]*policy.Policy{}
	for i := range records[:min(len(records), limit)] {
		r := &records[i]
		p := policies[r.Queue]
		if p == nil {
			if p, err = policyIn(infos, r.Queue); err != nil {
				return nil, false, err
			}
			policies[r.Queue] = p
		}
		most := p.ConfigFor(r.Type, r.LastReason).MaxAttempts
		if r.Attempts > most {
			most = -1 // it goes on until min_age is over
		}
		list = append(list, RetryingView{ViewMessage(&r.Message), most, Timestamp{r.NotBefore}})
	}
	return list, more || len(records) > limit, nil
}

// policyIn returns the policy of one of some queues.
func policyIn(infos []store.QueueInfo, queue string) (*policy.Policy, error) {
	i := slices.IndexFunc(infos, func(q store.QueueInfo) bool { return q.Name == queue })
	if i < 0 {
		return policy.New(policy.Config{}) // it was removed meanwhile
	}
	d, err := policy.ParseDocument(infos[i].Settings.Policy)
	if err != nil {
		return nil, err
	}
	return d.Policy()
}
