package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// What dlq show prints of long texts, unless -o wide.
const (
	shownBody  = 2 << 10 // bytes
	shownHex   = 256     // bytes of a body that is not text
	shownStack = 8       // lines
	shownTail  = 20      // lines at the end of an attachment
	shownWide  = 1 << 20 // bytes of each of them with -o wide
)

func newDLQShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Tell the whole story of a letter",
		Long: `Tells what a letter is, where it came from, every attempt, and what can be done
now. Long texts are cut unless -o wide; -o json has everything.`,
		Example: `  nixie dlq show order-4711
  nixie dlq show 01890a5d-ac96-774b-bcce-b302099a8057 -o wide
  nixie dlq show order-4711 -o json | jq -r .message.body`,
		Args: oneArg("ID"),
		RunE: g.with(nil, func(ctx context.Context, o *office.Office, args []string) error {
			l, err := o.Letter(ctx, args[0])
			if err != nil {
				return err
			}
			return g.object(office.ViewStory(&l), func(w io.Writer) error { return g.printLetter(w, &l) })
		}),
	}
}

func (g *globals) printLetter(w io.Writer, l *nixie.Letter) error {
	m := &l.Message
	fmt.Fprintf(w, "%s\n\n", escapeLine(l.Signature))
	f := newFacts(w)
	f.add("letter", l.ID.String())
	f.add("status", string(l.Status)+note(l.Note)+damaged(l.Damage))
	f.add("died", clock(office.Moment{Time: l.DiedAt})+", "+age(g.Now().Sub(l.DiedAt))+" ago, cause "+string(l.Cause))
	f.add("reason", string(l.Reason)+" ("+string(l.Class)+")")
	f.add("redrivable", yesNo(l.Redrivable)+", needs review: "+yesNo(l.NeedsReview)+", by rule "+orDash(l.Rule))
	f.add("group", l.Fingerprint)
	f.add("message", m.ID.String())
	f.add("key", m.Key)
	f.add("queue", m.Queue)
	f.add("type", m.Type)
	f.add("stream", m.Stream)
	f.add("dedupe key", m.DedupeKey)
	f.add("enqueued", clock(office.Moment{Time: m.EnqueuedAt}))
	f.add("counts", fmt.Sprintf("life %d: %s, %s, %d crashed; %s", m.Generation,
		plural(int64(m.Attempts), "attempt"), plural(int64(m.Deliveries), "delivery"), m.Crashes, plural(int64(m.Redrives), "redrive")))
	f.add("steps done", strings.Join(m.Steps, ", "))
	if m.Origin != nil {
		f.add("origin", fmt.Sprintf("%s %s/%d@%d %s", m.Origin.System, m.Origin.Channel, m.Origin.Partition, m.Origin.Offset, m.Origin.MessageID))
	}
	f.add("operation", l.Operation.String())
	f.add("resolved", strings.TrimPrefix(clock(office.Moment{Time: l.ResolvedAt}), "-"))
	for _, h := range m.Headers {
		f.add("header", h.Name+": "+h.Value)
	}
	for _, d := range l.Damage {
		f.add("DAMAGED", d)
	}
	f.end()
	for i := range l.Notes {
		n := &l.Notes[i]
		fmt.Fprintf(w, "\nNote of %s, %s:\n", escapeLine(n.By), clock(office.Moment{Time: n.At}))
		indent(w, n.Text, 0, g.bytes(shownBody))
	}
	g.printHistory(w, l.History, l.HistoryDropped)
	g.printBody(w, m.Body)
	g.printNext(w, l)
	return nil
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// printHistory prints every attempt that went wrong.
func (g *globals) printHistory(w io.Writer, list []nixie.Failure, dropped int) {
	for i := range list {
		if i == 1 && dropped > 0 {
			fmt.Fprintf(w, "\n  … %s not kept …\n", plural(int64(dropped), "failure"))
		}
		g.printFailure(w, &list[i])
	}
}

func (g *globals) printFailure(w io.Writer, f *nixie.Failure) {
	which := fmt.Sprintf("Life %d, attempt %d", f.Generation, f.Attempt)
	if f.Attempt == 0 && f.Generation == 0 {
		which = "An attempt that cannot be read"
	}
	fmt.Fprintf(w, "\n%s: %s after %s: %s (%s), then %s\n", which,
		clock(office.Moment{Time: f.FailedAt}), took(f.Took), f.Reason, f.Class, orDash(string(f.Decision)))
	indent(w, f.Text, 0, g.bytes(shownBody))
	var more []string
	for _, part := range [...]struct{ name, value string }{
		{"type", f.Type}, {"step", f.Step}, {"worker", f.Worker}, {"node", f.Node}, {"log", f.LogLocation},
		{"steps done", strings.Join(f.Steps, ", ")}, {"trail", strings.Join(f.Context, " › ")},
	} {
		if part.value != "" {
			more = append(more, part.name+" "+escapeLine(part.value))
		}
	}
	if f.ExitCode != nil {
		more = append(more, fmt.Sprintf("exit code %d", *f.ExitCode))
	}
	if f.Decision == nixie.Retry && !f.NextAt.IsZero() {
		more = append(more, "next at "+clock(office.Moment{Time: f.NextAt}))
	}
	if len(more) > 0 {
		fmt.Fprintf(w, "  %s\n", strings.Join(more, "; "))
	}
	if f.Stack != "" {
		fmt.Fprintln(w, "  stack:")
		indent(w, head(f.Stack, g.lines(shownStack)), 2, shownWide)
	}
	for _, a := range f.Attachments {
		fmt.Fprintf(w, "  %s, %s%s:\n", escapeLine(a.Name), plural(int64(len(a.Data)), "byte"), left(a.Truncated))
		if !office.IsText(a.Data) {
			indent(w, dump(a.Data, shownHex), 2, shownWide)
			continue
		}
		indent(w, tail(string(a.Data), g.lines(shownTail)), 2, shownWide)
	}
}

func left(truncated int64) string {
	if truncated == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more were not kept)", truncated)
}

// bytes and lines are how much of a text is shown.
func (g *globals) bytes(n int) int {
	if g.output == asWide {
		return shownWide
	}
	return n
}

func (g *globals) lines(n int) int { return g.bytes(n) }

func (g *globals) printBody(w io.Writer, body []byte) {
	fmt.Fprintf(w, "\nBody, %s:\n", plural(int64(len(body)), "byte"))
	if office.IsText(body) {
		indent(w, string(body), 0, g.bytes(shownBody))
		return
	}
	indent(w, dump(body, g.bytes(shownHex)), 0, shownWide)
}

// dump writes bytes as a hex dump, cut at n bytes.
func dump(b []byte, n int) string {
	s := hex.Dump(b[:min(len(b), n)])
	if len(b) > n {
		s += fmt.Sprintf("… %d more\n", len(b)-n)
	}
	return s
}

// indent writes foreign text in lines of its own, cut at n bytes.
func indent(w io.Writer, text string, deeper, n int) {
	rest := ""
	if len(text) > n {
		rest = fmt.Sprintf("\n… %d more bytes", len(text)-n)
		text = strings.ToValidUTF8(text[:n], "")
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	before := strings.Repeat(" ", 2+deeper)
	for line := range strings.SplitSeq(escape(text)+rest, "\n") {
		fmt.Fprintf(w, "%s%s\n", before, line)
	}
}

// head is the first n lines.
func head(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-n)
}

// tail is the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return fmt.Sprintf("… %d lines before\n", len(lines)-n) + strings.Join(lines[len(lines)-n:], "\n")
}

// printNext says what can be done now, as commands to type.
func (g *globals) printNext(w io.Writer, l *nixie.Letter) {
	id := l.ID.String()
	var next [][2]string
	redrive := func(extra, why string) {
		words := []string{"dlq", "redrive", id}
		if extra != "" {
			words = append(words, extra)
		}
		next = append(next, [2]string{g.typed(append(words, "--reason", "'…'")...), why})
	}
	switch l.Status {
	case nixie.StatusOpen, nixie.StatusReview:
		if l.Redrivable && !l.NeedsReview {
			redrive("", office.Advice(l.Reason))
		} else {
			redrive("--force", office.Advice(l.Reason))
		}
	case nixie.StatusRedriving:
		next = append(next, [2]string{g.typed("message", "show", l.Message.ID.String()), "it is on its way again"})
	case nixie.StatusQuarantined:
		next = append(next, [2]string{g.typed("dlq", "requalify", id, "--reason", "'…'"), "let it be redriven again"})
	case nixie.StatusDiscarded:
		if l.Message.State == nixie.Dead {
			next = append(next, [2]string{g.typed("dlq", "restore", id), "take the discard back"})
		}
	}
	if _, ok := nixie.NextStatus(l.Status, nixie.OnDiscard); ok {
		next = append(next, [2]string{g.typed("dlq", "discard", id, "--reason", "'…'"), "give it up"})
	}
	next = append(next, [2]string{g.typed("message", "log", l.Message.ID.String()), "its life in order of time"})
	fmt.Fprintln(w, "\nNext:")
	for _, n := range next {
		fmt.Fprintf(w, "  # %s\n  %s\n", n[1], n[0])
	}
}
