package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/nixie-go/nixie/bench/contest"
)

// childWord is the first argument of a process that measures. The second is an
// order.
const childWord = "measure"

// order tells a child what to do.
type order struct {
	Part    part          `json:"part"`
	Library string        `json:"library"`
	Setup   contest.Setup `json:"setup"`
	N       int           `json:"n"`
	Profile string        `json:"profile"` // file for a processor profile
}

// part of a measurement that a child does.
type part string

const (
	open part = "open" // makes the library's tables and the burden
	fill part = "fill" // enqueues the messages of a drain, and measures nothing
	play part = "play"
)

// measureAsChild carries out an order and prints the result.
func (p *Programme) measureAsChild(ctx context.Context, text string, out io.Writer) (err error) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	entrants, err := chosen("library", o.Library, p.Entrants, nameOf)
	if err != nil {
		return err
	}
	m := contest.Measurement{Entrant: &entrants[0], Setup: o.Setup, N: o.N}
	switch o.Part {
	case open:
		return m.Open(ctx)
	case fill:
		return m.Fill(ctx)
	}
	if o.Profile != "" {
		file, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		m.Profile = file
	}
	result, err := m.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// start runs an order in a process of its own, which ends with ctx.
func start(ctx context.Context, o order) (r contest.Result, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return r, err
	}
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	var said strings.Builder
	child := exec.CommandContext(ctx, program, childWord, string(text))
	child.Stderr = &said
	answer, err := child.Output()
	if err != nil {
		return r, fmt.Errorf("%s, %s %s, %d messages: %w: %s", o.Library, o.Part, o.Setup.Scenario, o.N, err,
			strings.TrimSpace(said.String()))
	}
	if o.Part != play {
		return r, nil
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("answer of %s: %w", o.Library, err)
	}
	return r, nil
}
