package store

import "context"

// Policies implements [lease.PolicyKeeper].
func (s *Source) Policies(ctx context.Context) (map[string]string, error) {
	queues, err := s.queue.Queues(ctx, QueueQuery{Names: append([]string{}, s.names...), Settings: true}) // no names are no queues, not all
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for i := range queues {
		if q := &queues[i]; q.Settings.Policy != "" {
			texts[q.Name] = q.Settings.Policy
		}
	}
	return texts, nil
}
