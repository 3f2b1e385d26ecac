package main

import (
	"crypto/sha256"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/grouping"
	"github.com/nixie-go/nixie/policy"
)

// grouper names the group of a line. It may remember the lines that it has seen.
type grouper func(grouping.Line) string

// ways are the ways to group. Each scores a system with a grouper of its own.
var ways = []struct {
	name    string
	grouper func() grouper
}{
	{"nixie", func() grouper { return ours }},
	{"type and first frame", func() grouper { return typeAndFrame }},
	{"hash of the text", func() grouper { return hashOfText }},
	{"template miner", newMiner},
}

func ours(l grouping.Line) string {
	failure := &nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Text: l.Text}
	if l.Cause == nil {
		_, fingerprint := policy.Signature(failure)
		return fingerprint
	}
	failure.ExitCode = &l.Cause.Exit
	failure.Class, failure.Reason = policy.OfCommand(l.Cause.Tool, l.Cause.Exit, l.Text)
	_, fingerprint := policy.SignatureOf(failure, &nixie.Message{Body: l.Cause.Item})
	return fingerprint
}

// typeAndFrame groups as trackers of exceptions do. The component that wrote a line stands for
// both, and a tool for the frame.
func typeAndFrame(l grouping.Line) string { return l.Origin }

func hashOfText(l grouping.Line) string {
	sum := sha256.Sum256([]byte(l.Text))
	return string(sum[:])
}
