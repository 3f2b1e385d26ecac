package grouping

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Cause holds what a real tool printed when it failed for a known cause, and the item that it had.
// Variants of one cause differ in users, hosts, addresses, identifiers, paths, numbers and lines.
type Cause struct {
	Tool     string          `json:"tool"`
	Language string          `json:"language"` // "-" for a tool that is no language's
	Name     string          `json:"cause"`    // among those of the tool
	Variant  int             `json:"variant"`  // from 1 on
	ByHand   bool            `json:"by_hand,omitempty"`
	Exit     int             `json:"exit"`
	Stderr   string          `json:"stderr,omitempty"`
	Stdout   string          `json:"stdout,omitempty"`
	Item     json.RawMessage `json:"item"`
}

// Label names the cause among those of all tools.
func (c Cause) Label() string { return c.Tool + "/" + c.Name }

// KeptOut reports whether a variant is one of every five that are not looked at while rules are
// made.
func (c Cause) KeptOut() bool { return c.Variant%5 == 0 }

// Causes reads a file of causes.
func Causes(file string) (list []Cause, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(nil, len(data)+1)
	for number := 1; lines.Scan(); number++ {
		var c Cause
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		list = append(list, c)
	}
	return list, lines.Err()
}
