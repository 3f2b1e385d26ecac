package store

import "context"

// Policies implements [nixie.PolicyKeeper].
func (s *Source) Policies(ctx context.Context) (map[string]string, error) {
	set, err := s.queue.Settings(ctx, s.names...)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, q := range set {
		if q.Policy != "" {
			texts[name] = q.Policy
		}
	}
	return texts, nil
}
