package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Problem reports a setting or a channel that [Source.Check] found unfit.
type Problem struct {
	Name    string // of the rule; it stays the same in all versions
	Refused bool   // the source must not start; otherwise it is a warning
	Text    string
}

// Limits are those of who handles the records of a source. Zero or less is none.
type Limits struct {
	Attempt    time.Duration // longest execution
	Wait       time.Duration // longest wait of a retry
	Deliveries int           // of a record, before it is poison
	Age        time.Duration // of a record, before it is too old
}

// Examiner is an optional ability of a driver: it knows settings of its broker by which that ends,
// drops or loses a record sooner than the limits of its consumer do.
type Examiner interface {
	// Examine is asked by [Source.Check], with the channels that take letters.
	Examine(ctx context.Context, letters []string, limits Limits) ([]Problem, error)
}

// Check examines the channels that a source is to use, before it receives the first record: the
// sources themselves, their stages, and the channels that take their letters. [FirstRefused] makes
// an error of its result.
func (s *Source) Check(ctx context.Context, sources []string) ([]Problem, error) {
	names, read := s.targets(sources)
	channels, err := s.c.Driver.Describe(ctx, slices.Concat(sources, names))
	if err != nil {
		return nil, err
	}
	var out []Problem
	var letters []string
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
			letters = append(letters, names[at])
		}
	}
	if e, can := s.c.Driver.(Examiner); can && FirstRefused(out) == nil {
		more, err := e.Examine(ctx, letters, s.c.Limits)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return slices.Compact(out), nil
}

// targets lists the channels that the source writes to, and those that it reads.
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

// FirstRefused returns an error for the first problem that keeps the source from starting.
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
		return []Problem{refuse("missing-source", "channel %s does not exist: create it, or correct its name", c.Name)}
	case c.Forbidden:
		return []Problem{refuse("forbidden-source", "the client's user may not read channel %s: grant that right", c.Name)}
	}
	return nil
}

// checkStage examines a channel where retries of a source wait.
func checkStage(source, stage *Channel, sources []string, delay time.Duration) []Problem {
	switch {
	case slices.Contains(sources, stage.Name):
		return []Problem{refuse("cycle", "retries of %s would wait on %s, which is a source too: name another channel", source.Name,
			stage.Name)}
	case stage.Missing:
		return []Problem{refuse("missing-stage", "channel %s for retries does not exist: create it", stage.Name)}
	case stage.Forbidden:
		return []Problem{refuse("forbidden-stage", "the client's user may not use channel %s for retries: grant that right", stage.Name)}
	case stage.Compacted:
		return []Problem{refuse("compacted-stage",
			"channel %s for retries is compacted, so a retry would replace another one of its key: switch compaction off", stage.Name)}
	case stage.Retention > 0 && stage.Retention < 2*delay:
		return []Problem{refuse("short-stage", "channel %s keeps records for %s, too short for retries that wait %s: raise its retention",
			stage.Name, stage.Retention, delay)}
	}
	return checkSize(source, stage, "a retry")
}

// checkLetters examines the channel that takes the letters of a source.
func checkLetters(source, letters *Channel, sources []string) (out []Problem) {
	switch {
	case slices.Contains(sources, letters.Name):
		return []Problem{refuse("cycle", "letters of %s would go to %s, which the source receives from: name another channel", source.Name,
			letters.Name)}
	case letters.Missing:
		return []Problem{refuse("missing-target", "channel %s for letters does not exist: create it", letters.Name)}
	case letters.Forbidden:
		return []Problem{refuse("forbidden-target", "the client's user may not write to channel %s for letters: grant that right",
			letters.Name)}
	case letters.Compacted:
		return []Problem{refuse("compacted-target",
			"channel %s for letters is compacted, so a letter would replace another one of its key: switch compaction off", letters.Name)}
	}
	out = checkSize(source, letters, "a letter")
	if letters.Retention > 0 && (source.Retention < 0 || letters.Retention < source.Retention) {
		out = append(out, warn("short-retention", "channel %s keeps letters for %s, shorter than %s keeps its records: raise its retention",
			letters.Name, letters.Retention, source.Name))
	}
	if letters.Copies == 1 || letters.Copies > 1 && letters.Needed < 2 {
		out = append(out,
			warn("not-durable",
				"channel %s has replicas: %d, and confirms a letter when this many have it: %d; one lost machine can lose a letter",
				letters.Name, letters.Copies, max(letters.Needed, 1)))
	}
	return out
}

// checkSize warns if a channel does not take the largest records of a source.
func checkSize(source, target *Channel, what string) []Problem {
	if target.MaxBytes == 0 || source.MaxBytes == 0 || target.MaxBytes >= source.MaxBytes+MaxAddedHeaders {
		return nil
	}
	return []Problem{warn("target-too-small",
		"channel %s takes records of at most %d bytes, and %s of %d; %s may need %d more: raise its limit",
		target.Name, target.MaxBytes, source.Name, source.MaxBytes, what, MaxAddedHeaders)}
}

// MaxAddedHeaders is the number of bytes that our headers can add to a record.
const MaxAddedHeaders = maxStack + maxText + maxHistoryBytes + 8<<10
