package office

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// FailureView shows a failed attempt.
type FailureView struct {
	Generation  int              `json:"generation"`
	Attempt     *int             `json:"attempt"` // null: not known
	StartedAt   Timestamp        `json:"started_at"`
	FailedAt    Timestamp        `json:"failed_at"`
	DurationMS  float64          `json:"duration_ms"`
	Class       nixie.Class      `json:"class"`
	Reason      nixie.Reason     `json:"reason"`
	Type        string           `json:"type"`
	Text        string           `json:"message"`
	Context     []string         `json:"context"`
	Stack       string           `json:"stack"`
	Worker      string           `json:"worker"`
	Node        string           `json:"node"`
	Step        string           `json:"step"`
	Group       string           `json:"group,omitempty"` // its name by hand
	ExitCode    *int             `json:"exit_code"`
	LogLocation string           `json:"log_location"`
	Steps       []string         `json:"steps"`
	Decision    nixie.Verb       `json:"decision"`
	NextAt      Timestamp        `json:"next_at"`
	Attachments []AttachmentView `json:"attachments"`
}

// ViewHistory makes the views of a message's failures, see [NewestWorktree].
func ViewHistory(list []nixie.Failure) []FailureView {
	views := make([]FailureView, 0, len(list))
	for _, f := range NewestWorktree(list) {
		var attempt *int
		if f.Attempt > 0 {
			attempt = &f.Attempt
		}
		views = append(views, FailureView{
			Generation: f.Generation, Attempt: attempt, StartedAt: Timestamp{f.StartedAt}, FailedAt: Timestamp{f.FailedAt},
			DurationMS: float64(f.Took) / float64(time.Millisecond), Class: f.Class, Reason: f.Reason, Type: f.Type, Text: f.Text,
			Context: orEmpty(f.Context), Stack: f.Stack, Worker: f.Worker, Node: f.Node, Step: f.Step, Group: f.Group, ExitCode: f.ExitCode,
			LogLocation: f.LogLocation, Steps: orEmpty(f.Steps), Decision: f.Decision, NextAt: Timestamp{f.NextAt},
			Attachments: viewAttachments(f.Attachments),
		})
	}
	return views
}

// AttachmentView shows an attachment of a failure.
type AttachmentView struct {
	Name      string  `json:"name"`
	Size      int     `json:"size"`
	Truncated int64   `json:"truncated"` // bytes that were not kept
	Text      *string `json:"text,omitempty"`
	Base64    *string `json:"base64,omitempty"`
}

func viewAttachments(list []nixie.Attachment) []AttachmentView {
	views := make([]AttachmentView, 0, len(list))
	for _, a := range list {
		v := AttachmentView{Name: a.Name, Size: len(a.Data), Truncated: a.Truncated}
		if s := string(a.Data); IsText(a.Data) {
			v.Text = &s
		} else {
			s = base64.StdEncoding.EncodeToString(a.Data)
			v.Base64 = &s
		}
		views = append(views, v)
	}
	return views
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func hexHash(h nixie.Hash) string { return hex.EncodeToString(h[:]) }

// NewestWorktree returns the failures with the worktree of the newest one that left any: those of
// earlier attempts are removed when it is kept.
func NewestWorktree(list []nixie.Failure) []nixie.Failure {
	left := false
	names := func(a nixie.Attachment) bool {
		return a.Name == itemfile.ArtifactPath || a.Name == itemfile.ArtifactBranch
	}
	for i := len(list) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(list[i].Attachments, names) {
			continue
		}
		if left {
			list = slices.Clone(list)
			list[i].Attachments = slices.DeleteFunc(slices.Clone(list[i].Attachments), names)
		}
		left = true
	}
	return list
}
