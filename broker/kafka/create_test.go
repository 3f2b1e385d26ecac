package kafka

import (
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
)

// Create finds a topic that brokers learn of only later: it asks them again.
func TestCreateWaitsForANewTopic(t *testing.T) {
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

// The code of an error tells whether the broker refused to create a topic, or may have created it.
func TestCreateTellsARefusal(t *testing.T) {
	for _, c := range []struct {
		answer *kerr.Error
		want   nixie.Code
	}{
		{kerr.InvalidTopicException, nixie.CodeInvalid},
		{kerr.PolicyViolation, nixie.CodeInvalid},
		{kerr.ClusterAuthorizationFailed, nixie.CodeDenied},
		{kerr.RequestTimedOut, nixie.CodeOutcomeUnknown},
	} {
		b := fake(t)
		b.cluster.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
			b.cluster.KeepControl()
			answer := r.ResponseKind().(*kmsg.CreateTopicsResponse)
			for _, topic := range r.(*kmsg.CreateTopicsRequest).Topics {
				answer.Topics = append(answer.Topics, kmsg.CreateTopicsResponseTopic{Topic: topic.Topic, ErrorCode: c.answer.Code})
			}
			return answer, nil, true
		})
		if _, err := Create(limited(t), Config{Seeds: b.seeds}, b.source, "refused"); nixie.CodeOf(err) != c.want {
			t.Errorf("%s: %v has code %q, want %q", c.answer.Message, err, nixie.CodeOf(err), c.want)
		}
	}
}
