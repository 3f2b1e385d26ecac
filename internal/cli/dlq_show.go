package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// The limits of dlq show, unless --whole.
const (
	shownLast  = 3       // failures at the end of a history; the first one is shown, too
	shownBody  = 2 << 10 // bytes of a text
	shownHex   = 256     // bytes of a body that is not text
	shownStack = 8       // lines
	shownTail  = 20      // lines at the end of an attachment
	shownWide  = 1 << 20 // bytes of each of them with --whole or -o wide
)

func newDLQShow(g *globals, of *jobLetters) *cobra.Command {
	var masking masking
	whole := false
	cmd := g.inOffice(g.described("dlq show", oneArg("ID")), func(ctx context.Context, o *office.Office, args []string) error {
		g.lengthen(whole)
		args, err := of.ids(ctx, o, args)
		if err != nil {
			return err
		}
		l, err := o.Letter(ctx, args[0])
		if err != nil {
			return err
		}
		masking.letter(&l)
		view := masking.story(&l)
		masking.body(&view.Message.Bytes)
		if view.Edited != nil {
			masking.body(&view.Edited.Bytes)
		}
		view.Masked = masking.hidden
		return g.object(view, func(w io.Writer) { g.printLetter(w, &l, &masking) })
	}, &masking)
	wholeVar(cmd, &whole)
	if of != nil {
		of.register(cmd.Flags())
	}
	return cmd
}

// wholeVar defines the flag --whole, which lengthen heeds.
func wholeVar(cmd *cobra.Command, whole *bool) {
	cmd.Flags().BoolVar(whole, "whole", false, "print every failure, and texts at length")
}

// lengthen prints whole what would be a page.
func (g *globals) lengthen(whole bool) {
	if whole && g.output == asTable {
		g.output = asWide
	}
}

func (g *globals) printLetter(w io.Writer, l *nixie.Letter, masking *masking) {
	m := &l.Message
	fmt.Fprintf(w, "%s\n\n", escapeLine(l.Signature))
	var f facts
	f.add("letter", l.ID.String(), "status", string(l.Status)+note(l.Note)+damaged(l.Damage),
		"died", moment(l.DiedAt)+", "+age(g.Now().Sub(l.DiedAt))+" ago, cause "+string(l.Cause),
		"reason", string(l.Reason)+" ("+string(l.Class)+")",
		"redrivable", yesNo(l.Redrivable)+", needs review: "+yesNo(l.NeedsReview)+", by rule "+orDash(l.Rule),
		"group", l.Fingerprint, "message", m.ID.String(), "key", m.Key, "queue", m.Queue, "type", m.Type, "stream", m.Stream,
		"dedupe key", m.DedupeKey, "enqueued", moment(m.EnqueuedAt), "redriven", strings.TrimPrefix(moment(m.RedrivenAt), "-"),
		"counts", countsOfMessage(m),
		"steps done", strings.Join(m.Steps, ", "))
	if m.Origin != nil {
		f.add("origin", origin(m.Origin), "died before", m.Origin.Earlier.String())
	}
	if o := l.Original; o != nil {
		f.add("edited", "by "+o.By+" at "+moment(o.At)+", before that sha256 "+hex.EncodeToString(o.Hash[:]))
	}
	f.add("operation", l.Operation.String(), "resolved", strings.TrimPrefix(moment(l.ResolvedAt), "-"))
	f.addMore(m.Headers, l.Damage)
	f.print(w)
	for i := range l.Notes {
		n := &l.Notes[i]
		fmt.Fprintf(w, "\nNote of %s, %s:\n", escapeLine(n.By), moment(n.At))
		indent(w, n.Text, 0, g.bytes(shownBody))
	}
	g.printHistory(w, l.History, l.HistoryDropped)
	if o := m.Origin; o != nil && o.BodyAt != "" {
		fmt.Fprintf(w, "\nBody: none, it lay at %s\n", escapeLine(o.BodyAt))
	} else {
		g.printBody(w, "Body", m.Body, masking)
	}
	if o := l.Original; o != nil {
		g.printBody(w, "Body before it was edited", o.Body, masking)
		for _, h := range o.Headers {
			fmt.Fprintf(w, "  header %s\n", escapeLine(h.Name+": "+h.Value))
		}
	}
	masking.sayHidden(w)
	g.printNext(w, l)
}

// attempts writes a number of attempts that may not be known.
func attempts(n *int) string {
	if n == nil {
		return "attempts not known"
	}
	return plural(int64(*n), "attempt")
}

// origin writes the origin of a message, as far as it is known.
func origin(o *nixie.Origin) string {
	text := o.System + " " + o.Channel
	if o.Partition >= 0 {
		text += fmt.Sprintf("/%d", o.Partition)
	}
	if o.Offset >= 0 {
		text += fmt.Sprintf("@%d", o.Offset)
	}
	return text + " " + o.MessageID
}

func note(s string) string { return either(s == "", "", " ("+s+")") }

// printHistory prints the first failed attempt and the last ones.
func (g *globals) printHistory(w io.Writer, list []nixie.Failure, dropped int) {
	list = office.NewestWorktree(list)
	next := 1 // after the first, the next one to print
	if g.output != asWide {
		next = max(next, len(list)-shownLast)
	}
	for i := range list {
		if i > 0 && i < next {
			continue
		}
		if i == next && dropped > 0 {
			fmt.Fprintf(w, "\n  … %s not kept …\n", plural(int64(dropped), "failure"))
		}
		if i == next && next > 1 {
			fmt.Fprintf(w, "\n  … %s between, which --whole shows …\n", plural(int64(next-1), "failure"))
		}
		g.printFailure(w, &list[i])
	}
}

func (g *globals) printFailure(w io.Writer, f *nixie.Failure) {
	which := fmt.Sprintf("Generation %d, attempt %d", f.Generation, f.Attempt)
	switch {
	case f.Attempt == 0 && f.Generation == 0:
		which = "An attempt that cannot be read"
	case f.Attempt == 0:
		which = fmt.Sprintf("Generation %d, attempt not known", f.Generation)
	}
	fmt.Fprintf(w, "\n%s: %s after %s: %s (%s), then %s\n", which,
		moment(f.FailedAt), took(f.Took), escapeLine(string(f.Reason)), escapeLine(string(f.Class)), orDash(escapeLine(string(f.Decision))))
	indent(w, f.Text, 0, g.bytes(shownBody))
	var more []string
	for _, part := range [...]struct{ name, value string }{
		{"type", f.Type}, {"step", f.Step}, {"group", f.Group}, {"worker", f.Worker}, {"node", f.Node},
		{"log", f.LogLocation + g.gone(f.LogLocation)}, {"steps done", strings.Join(f.Steps, ", ")},
		{"context", strings.Join(f.Context, " › ")},
	} {
		if part.value != "" {
			more = append(more, part.name+" "+escapeLine(part.value))
		}
	}
	if f.ExitCode != nil {
		more = append(more, fmt.Sprintf("exit code %d", *f.ExitCode))
	}
	if f.Decision == nixie.Retry && !f.NextAt.IsZero() {
		more = append(more, "next at "+moment(f.NextAt))
	}
	if len(more) > 0 {
		g.sentence(w, "  ", strings.Join(more, "; "))
	}
	if f.Stack != "" {
		fmt.Fprintln(w, "  stack:")
		indent(w, head(f.Stack, g.lines(shownStack)), 2, g.bytes(shownBody))
	}
	for _, a := range f.Attachments {
		fmt.Fprintf(w, "  %s, %s%s:\n", escapeLine(a.Name), plural(int64(len(a.Data)), "byte"), left(a.Truncated))
		if !office.IsText(a.Data) {
			indent(w, dump(a.Data, shownHex), 2, shownWide)
			continue
		}
		text := string(a.Data)
		if a.Name == itemfile.ArtifactPath {
			text += g.gone(text)
		}
		indent(w, tail(text, g.lines(shownTail), g.bytes(shownBody)), 2, 2*shownWide)
	}
}

// gone says that a file or folder of a job is not there any more.
func (g *globals) gone(path string) string {
	rel, err := filepath.Rel(g.worktrees(), path)
	if path == "" || err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	if _, err := os.Stat(path); err == nil {
		return ""
	}
	return " (not here: nixie map clean removed it, or it is on another machine)"
}

func left(truncated int64) string {
	return either(truncated == 0, "", fmt.Sprintf(" (%d more were not kept)", truncated))
}

// bytes and lines limit a shown text.
func (g *globals) bytes(n int) int {
	if g.output == asWide {
		return shownWide
	}
	return n
}

func (g *globals) lines(n int) int { return g.bytes(n) }

func (g *globals) printBody(w io.Writer, what string, body []byte, masking *masking) {
	fmt.Fprintf(w, "\n%s, %s:\n", what, plural(int64(len(body)), "byte"))
	if office.IsText(body) {
		indent(w, masking.text(string(body)), 0, g.bytes(shownBody))
	} else {
		indent(w, dump(body, g.bytes(shownHex)), 0, shownWide)
	}
}

// dump returns a hex dump of the first n bytes.
func dump(b []byte, n int) string {
	s := hex.Dump(b[:min(len(b), n)])
	if len(b) > n {
		s += fmt.Sprintf("… %d more\n", len(b)-n)
	}
	return s
}

// indent writes foreign text on lines of its own, cut after n bytes.
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

// head returns the first n lines.
func head(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-n)
}

// tail returns the last lines, at most a number of bytes of them.
func tail(text string, most, bytes int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	before := ""
	if n := len(lines) - most; n > 0 {
		before, text = fmt.Sprintf("… %d lines before\n", n), strings.Join(lines[n:], "\n")
	}
	if n := len(text) - bytes; n > 0 {
		before, text = fmt.Sprintf("… %d bytes before\n", n), strings.ToValidUTF8(text[n:], "")
	}
	return before + text
}

// printNext prints the commands that make sense now.
func (g *globals) printNext(w io.Writer, l *nixie.Letter) {
	if take := g.importOf(); take != "" {
		printSteps(w, []step{{take, "take these items into a store, to redrive them there"}})
		return
	}
	id := l.ID.String()
	var next []step
	switch o := l.Message.Origin; l.Status {
	case nixie.StatusOpen, nixie.StatusReview:
		if o != nil && o.BodyAt != "" {
			break // it cannot be sent
		}
		next = append(next, step{g.redriveOf(l), office.Advice(l.Reason)})
	case nixie.StatusRedriving:
		next = append(next, step{g.typed("message", "show", l.Message.ID.String()), "it is on its way again"})
	case nixie.StatusQuarantined:
		next = append(next, step{g.typed("dlq", "requalify", id, "--reason", "'…'"), "let it be redriven again"})
	case nixie.StatusDiscarded:
		if l.Message.State == nixie.Dead {
			next = append(next, step{g.typed("dlq", "restore", id), "take the discard back"})
		}
	}
	if lifecycle.May(l.Status, store.OnDiscard) {
		next = append(next, step{g.typed("dlq", "discard", id, "--reason", "'…'"), "give it up"})
	}
	next = append(next, step{g.typed("message", "log", l.Message.ID.String()), "its history in order of time"})
	printSteps(w, next)
}

// importOf returns the command that takes the present folder of items into a store; empty when
// letters are in a store already.
func (g *globals) importOf() string {
	url, err := config.StoreURL(g.store, g.Env)
	folder, is := app.ItemFolder(url)
	if err != nil || !is {
		return ""
	}
	return "nixie dlq import " + quote(folder)
}

// redriveOf returns the command that redrives a letter, with --force where its reason or status
// needs that.
func (g *globals) redriveOf(l *nixie.Letter) string {
	words := []string{"dlq", "redrive", l.ID.String()}
	if !l.Redrivable || l.NeedsReview {
		words = append(words, "--force")
	}
	return g.typed(append(words, "--reason", "'…'")...)
}
