package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newStream(g *globals) *cobra.Command {
	return g.family("stream", newStreamList(g), newStreamShow(g), newStreamRelease(g), newStreamUnblock(g))
}

func newStreamList(g *globals) *cobra.Command {
	var page pageFlags
	return g.inOffice(g.described("stream list", oneArg("queue")), func(ctx context.Context, o *office.Office, args []string) error {
		return list(g, &page, "streams", streamColumns(g.Now()), office.ViewStream, o.AllStreams(ctx, args[0]),
			func(p store.Page) ([]store.Stream, string, error) { return o.Streams(ctx, args[0], p) })
	}, &page)
}

func streamColumns(now time.Time) []column[office.StreamView] {
	type v = office.StreamView
	return []column[v]{
		{name: "stream", kind: flex}, {name: "state", paint: func(s *v) ink { return streamInk(s.State) }},
		{name: "followers"}, {name: "dead", show: asWide}, {name: "passing", show: asWide}, {name: "head", kind: ids}, {name: "attempts"},
		{name: "due_in", cell: func(s *v) string { return until(now, s.Due) }}, {name: "leased_by", show: asWide, kind: flex},
		{name: "failure", kind: flex},
	}
}

func streamInk(s store.StreamState) ink {
	switch s {
	case store.StreamBlocked:
		return red
	case store.StreamWaiting:
		return yellow
	}
	return ""
}

// shownFollowers limits the messages that stream show lists.
const shownFollowers = 10

// streamStory is the JSON of stream show.
type streamStory struct {
	office.StreamView
	Newest []office.MessageView `json:"newest"` // messages that have not ended, newest first
}

func newStreamShow(g *globals) *cobra.Command {
	return g.inOffice(g.described("stream show", queueAndStream()), func(ctx context.Context, o *office.Office, args []string) error {
		s, err := o.Stream(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		records, err := o.Followers(ctx, args[0], args[1], shownFollowers)
		if err != nil {
			return err
		}
		story := streamStory{office.ViewStream(&s), make([]office.MessageView, 0, len(records))}
		for i := range records {
			story.Newest = append(story.Newest, viewRow(&records[i]))
		}
		var dead nixie.Letter
		if story.Letter != "" && g.forPeople() {
			if dead, err = o.Letter(ctx, story.Letter); err != nil {
				return err
			}
		}
		return g.object(story, func(w io.Writer) { g.printStream(w, &story, &dead) })
	})
}

func queueAndStream() cobra.PositionalArgs {
	return arguments(2, 2, "wants a queue and a stream, has %[2]d: see %[1]s --help")
}

func (g *globals) printStream(w io.Writer, s *streamStory, dead *nixie.Letter) {
	due := ""
	if !s.Due.IsZero() {
		due = "in " + until(g.Now(), s.Due) + ", at " + clock(s.Due)
	}
	printFacts(w, "stream", s.Stream, "queue", s.Queue, "state", string(s.State)+waitsFor(s), "head", s.Head, "letter of head", s.Letter,
		"leased by", s.LeasedBy, "due", due, "attempts", strconv.Itoa(s.Attempts), "last failure", s.Failure,
		"followers", fmt.Sprintf("%d, of which %d may pass", s.Followers, s.Passing), "other letters", numeral(s.Dead))
	if len(s.Newest) > 0 {
		fmt.Fprintln(w, "\nNewest on their way:")
		for _, m := range s.Newest {
			fmt.Fprintf(w, "  %s  %s  %s\n", m.ID, m.State, escapeLine(m.Key))
		}
	}
	if next := g.streamNext(&s.StreamView, dead); len(next) > 0 {
		printSteps(w, next)
	}
}

func waitsFor(s *streamStory) string {
	switch s.State {
	case store.StreamBlocked:
		return ": its head is dead"
	case store.StreamWaiting:
		return ": its head is due later"
	}
	return ""
}

// streamNext lists the commands for a stream that does not move. L is the letter of a dead head.
func (g *globals) streamNext(s *office.StreamView, l *nixie.Letter) (next []step) {
	queue, stream := quote(s.Queue), quote(s.Stream)
	passed := s.Followers > 0 && s.Passing == s.Followers
	switch s.State {
	case store.StreamBlocked:
		why := either(passed, "those that come later go on without it, too", "the others go on without it, for good")
		next = append(next, step{g.typed("dlq", "show", s.Letter), "why it died"})
		if l.Status == nixie.StatusQuarantined {
			next = append(next, step{g.typed("dlq", "requalify", s.Letter, "--reason", "'…'"),
				"let it be redriven again; it keeps its position"})
		} else {
			next = append(next, step{g.redriveOf(l), "once the cause is fixed; it keeps its position"})
		}
		return append(next, step{g.typed("stream", "unblock", queue, stream, "--reason", "'…'"), why})
	case store.StreamWaiting:
		next = append(next, step{g.typed("message", "retry-now", s.Head), "once the cause is fixed: now, not later"})
		if !passed && s.Followers > 0 {
			next = append(next, step{g.typed("stream", "release", queue, stream, "--reason", "'…'"), "those that follow now may pass it"})
		}
		next = append(next, step{g.typed("message", "hold", s.Head, "--reason", "poison", "--release-followers"),
			"it will not succeed: to the office with it, and no message waits for it"})
	}
	return next
}

func newStreamRelease(g *globals) *cobra.Command {
	return g.streamVerb("release", (*office.Office).Pass, "message may pass", "messages may pass")
}

func newStreamUnblock(g *globals) *cobra.Command {
	return g.streamVerb("unblock", (*office.Office).Unblock, "letter blocks no more", "letters block no more")
}

// released is the JSON of stream release and stream unblock.
type released struct {
	Queue   string `json:"queue"`
	Stream  string `json:"stream"`
	Changed int64  `json:"changed"`
}

func (g *globals) streamVerb(verb string, do func(o *office.Office, ctx context.Context, queue, stream, reason string) (int64, error),
	one, many string) *cobra.Command {
	var reason reasonFlag
	return g.inOffice(g.described("stream "+verb, queueAndStream()), func(ctx context.Context, o *office.Office, args []string) error {
		n, err := do(o, ctx, args[0], args[1], reason.text)
		if nixie.CodeOf(err) == nixie.CodeNotFound {
			if _, missing := o.Queue(ctx, args[0]); missing != nil {
				return missing
			}
		}
		if err != nil {
			return err
		}
		return g.object(released{args[0], args[1], n}, func(w io.Writer) {
			fmt.Fprintf(w, "stream %s: %d %s\n", escapeLine(args[1]), n, either(n == 1, one, many))
		})
	}, &reason)
}
