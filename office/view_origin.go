package office

import "github.com/nixie-go/nixie"

// OriginView shows the origin of a message that did not come from our own enqueue.
type OriginView struct {
	System    string    `json:"system"`
	Channel   string    `json:"channel,omitempty"`
	Partition *int32    `json:"partition"` // null: not known, or there is none
	Offset    *int64    `json:"offset"`    // null: not known, or there is none
	MessageID string    `json:"message_id,omitempty"`
	Key       []byte    `json:"key"`
	Timestamp Timestamp `json:"timestamp"`
	Server    string    `json:"server,omitempty"`
	Database  string    `json:"database,omitempty"`
	Prefix    string    `json:"prefix,omitempty"`
	BodyHash  []byte    `json:"body_hash,omitempty"`
	BodyAt    string    `json:"body_at,omitempty"`
	Earlier   nixie.ID  `json:"earlier,omitzero"`
}

func viewOrigin(o *nixie.Origin) *OriginView {
	if o == nil {
		return nil
	}
	return &OriginView{o.System, o.Channel, nilIfNegative(o.Partition), nilIfNegative(o.Offset), o.MessageID, o.Key, Timestamp{o.Timestamp},
		o.Server, o.Database, o.Prefix, o.BodyHash, o.BodyAt, o.Earlier}
}

// origin reads what viewOrigin wrote.
func (v *OriginView) origin() *nixie.Origin {
	if v == nil {
		return nil
	}
	o := nixie.Origin{System: v.System, Channel: v.Channel, Partition: -1, Offset: -1, MessageID: v.MessageID, Key: v.Key,
		Timestamp: v.Timestamp.utc(),
		Server:    v.Server, Database: v.Database, Prefix: v.Prefix, BodyHash: v.BodyHash, BodyAt: v.BodyAt, Earlier: v.Earlier}
	if v.Partition != nil {
		o.Partition = *v.Partition
	}
	if v.Offset != nil {
		o.Offset = *v.Offset
	}
	return &o
}

// countOf returns a count, 0 when it is unknown.
func countOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// nilIfNegative returns nil for a negative number, which means unknown.
func nilIfNegative[N int32 | int64](n N) *N {
	if n < 0 {
		return nil
	}
	return &n
}

// attemptsOf returns the attempts of a message in this generation. It returns nil when they are
// unknown: the headers of a message that came dead from a broker may not say.
func attemptsOf(m *nixie.Message) *int {
	if m.Attempts == 0 && m.Deliveries == 0 && m.State == nixie.Dead && m.Origin != nil && m.LastReason != nixie.ReasonMaxAge {
		return nil
	}
	return &m.Attempts
}
