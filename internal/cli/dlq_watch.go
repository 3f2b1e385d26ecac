package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/office"
)

func newDLQWatch(g *globals) *cobra.Command {
	w := &watch{globals: g, masking: masking{always: true}}
	cmd := g.command(g.described("dlq watch"), w.run, &w.filter, &w.masking)
	fs := cmd.Flags()
	fs.StringVar(&w.cursor, "cursor", "", "go on where a watch ended")
	fs.BoolVar(&w.once, "once", false, "look once")
	durationVar(fs, &w.interval, "interval", office.DefaultInterval, "time between two scans")
	durationVar(fs, &w.length, "for", 0, "end after this time; 0 is never")
	fs.StringVar(&w.exec, "exec", "", "command to run for each new group")
	fs.StringVar(&w.as, "as", "", "name under which the store keeps what --exec was told (default from --exec and --filter)")
	durationVar(fs, &w.timeout, "exec-timeout", time.Minute, "how long that command may run")
	return cmd
}

// watch runs dlq watch.
type watch struct {
	*globals
	filter                    filterFlag
	cursor                    string
	once                      bool
	interval, length, timeout time.Duration
	exec, as                  string
	alarm                     *hook // of --exec
	masking                   masking
}

// maxAlarmOutput limits the output of a failed --exec command that is shown, in bytes of each
// stream.
const maxAlarmOutput = 2 << 10

func (w *watch) run(ctx context.Context, _ []string) (err error) {
	switch {
	case w.once && w.length != 0:
		return usagef("--once looks once: leave --for out")
	case w.length < 0 || w.timeout <= 0:
		return usagef("--for and --exec-timeout are positive durations")
	}
	if w.as, err = w.name(); err != nil {
		return err
	}
	if w.exec != "" {
		if w.alarm, err = newHook("exec", w.exec, w.timeout); err != nil {
			return err
		}
		w.alarm.spec.TailLimit = maxAlarmOutput
	}
	if err := w.format(asTable, asWide, asJSONL); err != nil {
		return err
	}
	asked := office.WatchRequest{Filter: w.filter.filter, Cursor: w.cursor, FromNow: !w.once, Once: w.once, Interval: w.interval,
		Name: w.as}
	if w.length > 0 {
		asked.Until = w.Now().Add(w.length)
	}
	return w.visit(func(o *office.Office) error {
		if w.alarm != nil {
			if err := w.alarm.guard(w.globals); err != nil {
				return err
			}
			defer w.alarm.end()
			asked.Alarm = w.sound
		}
		var err error
		if asked.Filter, _, err = o.Resolve(ctx, asked.Filter); err != nil {
			return err
		}
		cursor, err := o.Watch(ctx, asked, w.tell)
		if cursor != "" {
			w.say("cursor %s", cursor)
		}
		return err
	})
}

// maxWatchName limits the name of a watch, in bytes.
const maxWatchName = 200

// name returns the name of a watch with a hook. Another filter is another watch.
func (w *watch) name() (string, error) {
	switch {
	case w.exec == "" && w.as != "":
		return "", usagef("--as names what --exec was told: give --exec too")
	case len(w.as) > maxWatchName:
		return "", usagef("--as has %d bytes: give at most %d", len(w.as), maxWatchName)
	case w.exec == "" || w.as != "":
		return w.as, nil
	}
	name := strings.TrimSpace(w.exec + " " + w.filter.text)
	if len(name) > maxWatchName {
		return "", usagef("--exec and --filter have %d bytes, more than the %d of a name: give --as NAME", len(name), maxWatchName)
	}
	return name, nil
}

// tell prints news.
func (w *watch) tell(_ context.Context, n office.News) error {
	w.mask(&n)
	return w.print(&n)
}

func (w *watch) mask(n *office.News) {
	for i := range n.Letters {
		n.Letters[i].LastFailure = w.masking.text(n.Letters[i].LastFailure)
	}
}

func (w *watch) print(n *office.News) error {
	if !w.forPeople() {
		line, err := encode(n)
		if err != nil {
			return err
		}
		_, err = w.Out.Write(append(line, '\n'))
		return err
	}
	mark := "more"
	if n.NewGroup {
		mark = "NEW "
	}
	for i := range n.Letters {
		l := &n.Letters[i]
		id, width := l.ID.String(), w.tableWidth()
		if width > 0 {
			id = ending(id, shownDigits)
		}
		line := fmt.Sprintf("%s  %s  %s  %s  %s  %s", clock(l.DiedAt), mark, id, escapeLine(l.Queue), escapeLine(orDash(l.Key)),
			escapeLine(n.Signature))
		if width > 0 {
			line = cut(line, width)
		}
		if _, err := fmt.Fprintln(w.Out, line); err != nil {
			return err
		}
		mark = "more"
	}
	if rest := n.Added - int64(len(n.Letters)); rest > 0 {
		_, err := fmt.Fprintf(w.Out, "%20s  more  and %s of %s\n", "", plural(rest, "letter"), n.Fingerprint)
		return err
	}
	return nil
}

// sound runs the command of --exec, and says that it failed.
func (w *watch) sound(ctx context.Context, n office.News) error {
	w.mask(&n)
	note, err := json.Marshal(n)
	if err != nil {
		return err
	}
	first := &n.Letters[0]
	err = w.alarm.run(ctx, note, nil,
		command.Field{Name: "NIXIE_GROUP", Value: n.Fingerprint}, command.Field{Name: "NIXIE_SIGNATURE", Value: n.Signature},
		command.Field{Name: "NIXIE_REASON", Value: string(n.Reason)}, command.Field{Name: "NIXIE_QUEUE", Value: first.Queue},
		command.Field{Name: "NIXIE_LETTER", Value: first.ID.String()}, command.Field{Name: "NIXIE_COUNT", Value: numeral(n.Added)})
	if err != nil && ctx.Err() == nil {
		w.say("--exec for group %s: %v", n.Fingerprint, err)
	}
	return err
}
