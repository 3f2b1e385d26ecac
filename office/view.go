package office

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Timestamp is a time in a view: RFC 3339 in UTC, null when it is zero.
type Timestamp struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (m Timestamp) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + m.UTC().Format(time.RFC3339Nano) + `"`), nil
}

// String is the form of MarshalJSON without quotes; "" when it is zero.
func (m Timestamp) String() string {
	if m.IsZero() {
		return ""
	}
	return m.UTC().Format(time.RFC3339Nano)
}

// LetterView shows a letter in a list.
type LetterView struct {
	ID            nixie.ID     `json:"id"`
	MessageID     nixie.ID     `json:"message_id"`
	Key           string       `json:"key"` // the item id
	Queue         string       `json:"queue"`
	Type          string       `json:"type"`
	Status        nixie.Status `json:"status"`
	Cause         nixie.Cause  `json:"cause"`
	Reason        nixie.Reason `json:"reason"`
	Class         nixie.Class  `json:"class"`
	Signature     string       `json:"signature"`
	Fingerprint   string       `json:"fingerprint"`
	Redrivable    bool         `json:"redrivable"`
	NeedsReview   bool         `json:"needs_review"`
	Rule          string       `json:"rule"`
	Attempts      *int         `json:"attempts"` // null: not known
	Deliveries    int          `json:"deliveries"`
	Crashes       int          `json:"crashes"`
	Generation    int          `json:"generation"`
	Redrives      int          `json:"redrives"`
	FirstFailedAt Timestamp    `json:"first_failed_at"`
	LastFailedAt  Timestamp    `json:"last_failed_at"`
	DiedAt        Timestamp    `json:"died_at"`
	Origin        string       `json:"origin,omitempty"` // system:channel/partition/offset of a record of a broker
	LastFailure   string       `json:"last_failure"`     // text of the newest failure
	Damage        []string     `json:"damage,omitempty"` // parts that could not be read; absent without damage
}

// ViewLetter makes the view of a letter in a list.
func ViewLetter(l *nixie.Letter) LetterView {
	m := &l.Message
	return LetterView{
		ID: l.ID, MessageID: m.ID, Key: m.Key, Queue: m.Queue, Type: m.Type, Status: l.Status, Cause: l.Cause,
		Reason: l.Reason, Class: l.Class, Signature: l.Signature, Fingerprint: l.Fingerprint,
		Redrivable: l.Redrivable, NeedsReview: l.NeedsReview, Rule: l.Rule,
		Attempts: attemptsOf(m), Deliveries: m.Deliveries, Crashes: m.Crashes, Generation: m.Generation, Redrives: m.Redrives,
		FirstFailedAt: Timestamp{l.FirstFailedAt}, LastFailedAt: Timestamp{l.LastFailedAt}, DiedAt: Timestamp{l.DiedAt}, Damage: l.Damage,
		Origin: originText(m.Origin), LastFailure: m.LastFailure,
	}
}

// originText writes the origin of a broker's record, for lists.
func originText(o *nixie.Origin) string {
	switch {
	case o == nil || o.Channel == "":
		return ""
	case o.Offset < 0:
		return o.System + ":" + o.Channel
	}
	return fmt.Sprintf("%s:%s/%d/%d", o.System, o.Channel, o.Partition, o.Offset)
}

// LetterDetail shows a letter with its message, notes and history. Dlq show and dlq export print
// it.
type LetterDetail struct {
	LetterView
	ResolvedAt     Timestamp        `json:"resolved_at"`
	Operation      string           `json:"operation"`
	Note           string           `json:"note"`
	Notes          []NoteView       `json:"notes"` // by operators, oldest first
	Revision       int64            `json:"revision"`
	Edited         *EditedView      `json:"edited,omitempty"` // absent unless an operator edited the message
	Message        MessageView      `json:"message"`
	Headers        []nixie.Header   `json:"headers"`
	Artifacts      []AttachmentView `json:"artifacts"`
	History        []FailureView    `json:"history"` // oldest first
	HistoryDropped int              `json:"history_dropped"`
	Masked         bool             `json:"masked,omitempty"` // secrets are hidden, so it differs from the letter in the store
}

// EditedView shows a message as it was before its first edit for a redrive.
type EditedView struct {
	At      Timestamp      `json:"at"` // the first edit
	By      string         `json:"by"`
	Hash    string         `json:"sha256"` // of the body before
	Headers []nixie.Header `json:"headers"`
	Bytes                  // body or body_base64, before
}

func viewEdited(o *nixie.Original) *EditedView {
	if o == nil {
		return nil
	}
	return &EditedView{At: Timestamp{o.At}, By: o.By, Hash: hexHash(o.Hash), Headers: orEmpty(o.Headers), Bytes: ViewBytes(o.Body)}
}

// NoteView shows an operator's note on a letter.
type NoteView struct {
	At   Timestamp `json:"at"`
	By   string    `json:"by"`
	Text string    `json:"text"`
}

func viewNotes(list []nixie.Note) []NoteView {
	views := make([]NoteView, 0, len(list))
	for _, n := range list {
		views = append(views, NoteView{Timestamp{n.At}, n.By, n.Text})
	}
	return views
}

// ViewLetterDetail makes the detail view of a letter that was read whole.
func ViewLetterDetail(l *nixie.Letter) LetterDetail {
	return LetterDetail{
		LetterView: ViewLetter(l), ResolvedAt: Timestamp{l.ResolvedAt}, Operation: l.Operation.String(), Note: l.Note,
		Notes: viewNotes(l.Notes), Revision: l.Revision, Edited: viewEdited(l.Original),
		Message: ViewMessage(&l.Message), Headers: orEmpty(l.Message.Headers), Artifacts: viewAttachments(l.Artifacts),
		History: ViewHistory(l.History), HistoryDropped: l.HistoryDropped,
	}
}

// Bytes are opaque bytes in a view: text when they are UTF-8 without NUL,
// base64 otherwise.
type Bytes struct {
	Text   *string `json:"body,omitempty"`
	Base64 *string `json:"body_base64,omitempty"`
}

// ViewBytes shows bytes as text if they are text.
func ViewBytes(b []byte) Bytes {
	s := string(b)
	if IsText(b) {
		return Bytes{Text: &s}
	}
	s = base64.StdEncoding.EncodeToString(b)
	return Bytes{Base64: &s}
}

// IsText reports whether bytes can be shown as text.
func IsText(b []byte) bool { return utf8.Valid(b) && !strings.Contains(string(b), "\x00") }

// MessageView shows a message, with its body when it was read whole.
type MessageView struct {
	ID              nixie.ID       `json:"id"`
	Queue           string         `json:"queue"`
	Type            string         `json:"type"`
	Key             string         `json:"key"`
	Stream          string         `json:"stream"`
	DedupeKey       string         `json:"dedupe_key"`
	Priority        int            `json:"priority"`
	State           nixie.State    `json:"state"`
	Attempts        *int           `json:"attempts"` // null: not known
	Deliveries      int            `json:"deliveries"`
	Crashes         int            `json:"crashes"`
	Generation      int            `json:"generation"`
	Redrives        int            `json:"redrives"`
	Steps           []string       `json:"steps"`
	MayPass         bool           `json:"may_pass"`
	OrderGap        bool           `json:"order_gap"`
	Hash            string         `json:"sha256"` // of the body
	Size            int            `json:"size"`   // bytes of the body; 0 in lists
	Origin          *OriginView    `json:"origin"`
	EnqueuedAt      Timestamp      `json:"enqueued_at"`
	RedrivenAt      Timestamp      `json:"redriven_at,omitzero"`
	NotBefore       Timestamp      `json:"not_before"`
	ExpiresAt       Timestamp      `json:"expires_at"`
	FirstReceivedAt Timestamp      `json:"first_received_at"`
	EndedAt         Timestamp      `json:"ended_at"`
	LeaseOwner      string         `json:"lease_owner"`
	LeasedAt        Timestamp      `json:"leased_at"`
	LeaseExpiresAt  Timestamp      `json:"lease_expires_at"`
	LastFailure     string         `json:"last_failure"`
	LastReason      nixie.Reason   `json:"last_reason"`
	Bytes                          // body or body_base64
	Damage          []string       `json:"damage,omitempty"`
	Headers         []nixie.Header `json:"headers,omitempty"` // in message show; LetterDetail has its own
	History         []FailureView  `json:"history,omitempty"`
}

// dueAt returns the time before which no worker gets a message, or none if it need not wait. Stores
// give such a message the time of its enqueue, of its last redrive, or none.
func dueAt(m *nixie.Message) Timestamp {
	if !m.NotBefore.After(m.Since()) {
		return Timestamp{}
	}
	return Timestamp{m.NotBefore}
}

// ViewMessage makes the view of a message. It leaves out a nil body.
func ViewMessage(m *nixie.Message) MessageView {
	v := MessageView{
		ID: m.ID, Queue: m.Queue, Type: m.Type, Key: m.Key, Stream: m.Stream, DedupeKey: m.DedupeKey, Priority: m.Priority, State: m.State,
		MayPass: m.MayPass, OrderGap: m.OrderGap,
		Attempts: attemptsOf(m), Deliveries: m.Deliveries, Crashes: m.Crashes, Generation: m.Generation, Redrives: m.Redrives,
		Steps: orEmpty(m.Steps), Hash: hexHash(m.Hash), Size: len(m.Body), Origin: viewOrigin(m.Origin),
		EnqueuedAt: Timestamp{m.EnqueuedAt}, RedrivenAt: Timestamp{m.RedrivenAt}, NotBefore: dueAt(m), ExpiresAt: Timestamp{m.ExpiresAt},
		FirstReceivedAt: Timestamp{m.FirstReceivedAt}, EndedAt: Timestamp{m.EndedAt},
		LeaseOwner: m.LeaseOwner, LeasedAt: Timestamp{m.LeasedAt}, LeaseExpiresAt: Timestamp{m.LeaseExpiresAt},
		LastFailure: m.LastFailure, LastReason: m.LastReason,
	}
	if m.Body != nil {
		v.Bytes = ViewBytes(m.Body)
	}
	return v
}
