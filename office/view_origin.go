package office

import "github.com/nixie-go/nixie"

// OriginView is where a message came from when it did not come from our own enqueue.
type OriginView struct {
	System    string    `json:"system"`
	Channel   string    `json:"channel,omitempty"`
	Partition *int32    `json:"partition"` // null: not known, or there is none
	Offset    *int64    `json:"offset"`    // null: not known, or there is none
	MessageID string    `json:"message_id,omitempty"`
	Key       []byte    `json:"key"`
	Timestamp Timestamp `json:"timestamp"`
}

func viewOrigin(o *nixie.Origin) *OriginView {
	if o == nil {
		return nil
	}
	return &OriginView{o.System, o.Channel, said(o.Partition), said(o.Offset), o.MessageID, o.Key, Timestamp{o.Timestamp}}
}

// origin is the inverse of viewOrigin.
func (v *OriginView) origin() *nixie.Origin {
	if v == nil {
		return nil
	}
	o := nixie.Origin{System: v.System, Channel: v.Channel, Partition: -1, Offset: -1, MessageID: v.MessageID, Key: v.Key,
		Timestamp: v.Timestamp.plain()}
	if v.Partition != nil {
		o.Partition = *v.Partition
	}
	if v.Offset != nil {
		o.Offset = *v.Offset
	}
	return &o
}

// countOf is the inverse of what makes a count that is not known nothing.
func countOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// said is a number that is not negative, or nothing.
func said[N int32 | int64](n N) *N {
	if n < 0 {
		return nil
	}
	return &n
}

// attemptsOf is how often a message was executed in this life, or nothing: of one that
// came from a broker dead, for an error, headers may not say it.
func attemptsOf(m *nixie.Message) *int {
	if m.Attempts == 0 && m.State == nixie.Dead && m.Origin != nil && m.LastReason != nixie.ReasonMaxAge {
		return nil
	}
	return &m.Attempts
}
