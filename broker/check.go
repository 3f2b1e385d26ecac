package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Finding is what a start-time check has to say about a setting or a channel.
type Problem struct {
	Name    string // of the rule, stable
	Refused bool   // the source must not start; else a warning
	Text    string
}

// Check looks at the channels that a source is to use, before the first record is
// touched: sources as the driver receives from, and where their letters go.
// [FirstRefused] makes an error of what it found.
func (s *Source) Check(ctx context.Context, sources []string) ([]Problem, error) {
	names, read := s.targets(sources)
	channels, err := s.c.Driver.Describe(ctx, slices.Concat(sources, names))
	if err != nil {
		return nil, err
	}
	var out []Problem
	for n := range sources {
		source := &channels[n]
		out = append(out, checkSource(source)...)
		for _, stage := range s.features.Stages {
			at := slices.Index(names, stage.Of(source.Name))
			out = append(out, checkStage(source, &channels[len(sources)+at], sources, stage.Delay)...)
		}
		if s.c.Letters != "" {
			at := slices.Index(names, ChannelName(s.c.Letters, source.Name))
			out = append(out, checkLetters(source, &channels[len(sources)+at], read)...)
		}
	}
	return slices.Compact(out), nil
}

// targets lists the channels that are written to, and those that are read.
func (s *Source) targets(sources []string) (names, read []string) {
	read = slices.Clone(sources)
	for _, source := range sources {
		for _, stage := range s.features.Stages {
			read = append(read, stage.Of(source))
		}
		if s.c.Letters != "" {
			names = append(names, ChannelName(s.c.Letters, source))
		}
	}
	return append(names, read[len(sources):]...), read
}

// Refusal is the error of the first finding for which a source must not start.
func FirstRefused(found []Problem) error {
	for _, f := range found {
		if f.Refused {
			return nixie.Errorf(nixie.CodeInvalid, "%s (%s)", f.Text, f.Name)
		}
	}
	return nil
}

func refuse(name, format string, args ...any) Problem {
	return Problem{name, true, fmt.Sprintf(format, args...)}
}

func warn(name, format string, args ...any) Problem {
	return Problem{name, false, fmt.Sprintf(format, args...)}
}

func checkSource(c *Channel) []Problem {
	switch {
	case c.Missing:
		return []Problem{refuse("missing-source", "channel %s is not there: create it, or mend its name", c.Name)}
	case c.Forbidden:
		return []Problem{refuse("forbidden-source", "channel %s may not be read: grant the client's user that right", c.Name)}
	}
	return nil
}

// checkStage looks at a channel on which records of a source wait.
func checkStage(source, stage *Channel, sources []string, delay time.Duration) []Problem {
	switch {
	case slices.Contains(sources, stage.Name):
		return []Problem{refuse("cycle", "retries of %s would wait on %s, which is a source itself; name another channel", source.Name, stage.Name)}
	case stage.Missing:
		return []Problem{refuse("missing-stage", "channel %s, on which retries are to wait, is not there: create it", stage.Name)}
	case stage.Forbidden:
		return []Problem{refuse("forbidden-stage", "channel %s, on which retries are to wait, may not be used: grant the client's user that right", stage.Name)}
	case stage.Compacted:
		return []Problem{refuse("compacted-stage", "channel %s, on which retries are to wait, is compacted: a retry would take the place of another of its key; turn that off", stage.Name)}
	case stage.Retention > 0 && stage.Retention < 2*delay:
		return []Problem{refuse("short-stage", "channel %s keeps records for %s, and retries wait there for %s: they would be gone; raise its retention", stage.Name, stage.Retention, delay)}
	}
	return room(source, stage, "a retry")
}

// checkLetters looks at the channel that takes the letters of a source.
func checkLetters(source, letters *Channel, sources []string) (out []Problem) {
	switch {
	case slices.Contains(sources, letters.Name):
		return []Problem{refuse("cycle", "letters of %s go to %s, which is received from: they would come round for ever; name another channel", source.Name, letters.Name)}
	case letters.Missing:
		return []Problem{refuse("missing-target", "channel %s, which is to take letters, is not there: create it", letters.Name)}
	case letters.Forbidden:
		return []Problem{refuse("forbidden-target", "channel %s, which is to take letters, may not be written to: grant the client's user that right", letters.Name)}
	case letters.Compacted:
		return []Problem{refuse("compacted-target", "channel %s, which is to take letters, is compacted: a letter would take the place of another of its key; turn that off", letters.Name)}
	}
	out = room(source, letters, "a letter")
	if letters.Retention > 0 && (source.Retention < 0 || letters.Retention < source.Retention) {
		out = append(out, warn("short-retention", "channel %s keeps letters for %s, which is less than %s keeps its records: raise it", letters.Name, letters.Retention, source.Name))
	}
	if letters.Copies == 1 || letters.Copies > 1 && letters.Needed < 2 {
		out = append(out, warn("not-durable", "channel %s has %d copies, of which a confirmation waits for %d: a letter that one machine has is lost with it", letters.Name, letters.Copies, max(letters.Needed, 1)))
	}
	return out
}

// room warns of a channel that does not take all that comes from a source.
func room(source, target *Channel, what string) []Problem {
	if target.MaxBytes == 0 || source.MaxBytes == 0 || target.MaxBytes >= source.MaxBytes+MaxAddedHeaders {
		return nil
	}
	return []Problem{warn("target-too-small", "channel %s takes records of %d bytes, and %s such of %d: %s needs up to %d more than its record; raise its limit",
		target.Name, target.MaxBytes, source.Name, source.MaxBytes, what, MaxAddedHeaders)}
}

// MaxAddedHeaders is the most that our headers of a letter need beyond the record.
const MaxAddedHeaders = maxStack + maxText + maxStory + 8<<10
