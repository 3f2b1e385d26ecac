package kafka

import (
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A topic of which brokers hear a moment later is found: each look asks them anew.
func TestCreateLooksAgain(t *testing.T) {
	b := fake(t)
	late := b.source + "-late"
	asked := make(chan struct{})
	var once sync.Once
	b.cluster.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		for _, topic := range r.(*kmsg.MetadataRequest).Topics {
			if topic.Topic != nil && *topic.Topic == late {
				once.Do(func() { close(asked) })
			}
		}
		return nil, nil, false
	})
	there := make(chan struct{})
	go func() {
		defer close(there)
		<-asked
		b.create(t, 1, nil, late)
	}()
	retries := late + ".retry"
	if made, err := Create(limited(t), Config{Seeds: b.seeds}, late, retries); err != nil || !slices.Equal(made, []string{retries}) {
		t.Error(made, err)
	}
	<-there
}
