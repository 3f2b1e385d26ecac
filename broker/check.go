package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
)

// Finding is what a start-time check has to say about a setting or a channel.
type Finding struct {
	Name    string // of the rule, stable
	Refused bool   // the source must not start; else a warning
	Text    string
}

// Check looks at the channels that a source is to use, before the first record is
// touched: sources as the driver receives from, and where their letters go.
// [Refusal] makes an error of what it found.
func (s *Source) Check(ctx context.Context, sources []string) ([]Finding, error) {
	var names []string
	names = append(names, sources...)
	for _, source := range sources {
		if s.c.Letters != "" {
			names = append(names, named(s.c.Letters, source))
		}
	}
	channels, err := s.c.Driver.Survey(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for n := range sources {
		out = append(out, checkSource(&channels[n])...)
		if s.c.Letters != "" {
			out = append(out, checkLetters(&channels[n], &channels[len(sources)+n], sources)...)
		}
	}
	return slices.Compact(out), nil
}

// Refusal is the error of the first finding for which a source must not start.
func Refusal(found []Finding) error {
	for _, f := range found {
		if f.Refused {
			return nixie.Errorf(nixie.CodeInvalid, "%s (%s)", f.Text, f.Name)
		}
	}
	return nil
}

func refuse(name, format string, args ...any) Finding {
	return Finding{name, true, fmt.Sprintf(format, args...)}
}

func warn(name, format string, args ...any) Finding {
	return Finding{name, false, fmt.Sprintf(format, args...)}
}

func checkSource(c *Channel) []Finding {
	switch {
	case c.Missing:
		return []Finding{refuse("missing-source", "channel %s is not there: create it, or mend its name", c.Name)}
	case c.Forbidden:
		return []Finding{refuse("forbidden-source", "channel %s may not be read: grant the client's user that right", c.Name)}
	}
	return nil
}

// checkLetters looks at the channel that takes the letters of a source.
func checkLetters(source, letters *Channel, sources []string) (out []Finding) {
	switch {
	case slices.Contains(sources, letters.Name):
		return []Finding{refuse("cycle", "letters of %s go to %s, which is received from: they would come round for ever; name another channel", source.Name, letters.Name)}
	case letters.Missing:
		return []Finding{refuse("missing-target", "channel %s, which is to take letters, is not there: create it", letters.Name)}
	case letters.Forbidden:
		return []Finding{refuse("forbidden-target", "channel %s, which is to take letters, may not be written to: grant the client's user that right", letters.Name)}
	case letters.Compacted:
		return []Finding{refuse("compacted-target", "channel %s, which is to take letters, is compacted: a letter would take the place of another of its key; turn that off", letters.Name)}
	}
	if letters.MaxBytes > 0 && source.MaxBytes > 0 && letters.MaxBytes < source.MaxBytes+headersRoom {
		out = append(out, warn("target-too-small", "channel %s takes records of %d bytes, and %s such of %d: a letter needs up to %d more than its record; raise its limit",
			letters.Name, letters.MaxBytes, source.Name, source.MaxBytes, headersRoom))
	}
	if letters.Retention > 0 && (source.Retention < 0 || letters.Retention < source.Retention) {
		out = append(out, warn("short-retention", "channel %s keeps letters for %s, which is less than %s keeps its records: raise it", letters.Name, letters.Retention, source.Name))
	}
	if letters.Copies == 1 || letters.Copies > 1 && letters.Needed < 2 {
		out = append(out, warn("not-durable", "channel %s has %d copies, of which a confirmation waits for %d: a letter that one machine has is lost with it", letters.Name, letters.Copies, max(letters.Needed, 1)))
	}
	return out
}

// headersRoom is the most that our headers of a letter need beyond the record.
const headersRoom = maxStack + maxText + 8<<10
