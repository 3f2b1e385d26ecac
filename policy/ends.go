package policy

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
)

// JoinEnds returns what is kept of an output: its first bytes and its last, with a line between
// them that tells how many are left out, and that number. It leaves out the lines at the cut too,
// because a mask cannot hide a secret of which only a part is there. Without a whole first line
// there is the end only. [WhyOf] reads the result.
func JoinEnds(first, last []byte, between int64) (data []byte, cut int64) {
	if between == 0 {
		return slices.Concat(first, last), 0
	}
	whole := bytes.LastIndexByte(first, '\n') + 1
	end := nixie.Attachment{Data: last, Truncated: between + int64(len(first)-whole)}
	if whole == 0 {
		return end.Data, end.Truncated
	}
	dropBrokenLine(&end)
	return slices.Concat(first[:whole], cutLine(end.Truncated), end.Data), end.Truncated
}

// cutLine is the line between two ends.
func cutLine(n int64) []byte { return fmt.Appendf(nil, "…[%d bytes cut]…\n", n) }
