package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// rawMailbox has bodies as they are.
type rawMailbox = loop.Mailbox[[]byte, []byte]

// rawCodec leaves bodies as they are.
type rawCodec struct{}

func (rawCodec) Encode(body any) ([]byte, error) { return body.([]byte), nil }

func (rawCodec) Decode(data []byte, into any) error {
	*into.(*[]byte) = data
	return nil
}

// inMailbox completes a command on a mailbox: one of Redis by its URL, or a queue of the store by
// its name. Exists refuses to make a store.
func (g *globals) inMailbox(path string, args cobra.PositionalArgs, exists bool,
	do func(ctx context.Context, box *rawMailbox, args []string) error, groups ...flagGroup,
) *cobra.Command {
	return g.command(g.described(path, args), func(ctx context.Context, args []string) error {
		c := loop.Config{Codec: rawCodec{}, Clock: g.Now, Logger: slog.New(slog.DiscardHandler)}
		if !isBroker(args[0]) {
			return g.withStore(app.Options{MustExist: exists, Owner: config.Actor(g.Env), Clock: g.Now}, func(st store.Store) error {
				box, err := loop.In[[]byte, []byte](st, args[0], c)
				if err != nil {
					return err
				}
				return do(ctx, box, args)
			})
		}
		at, err := g.channelAt(args[0])
		switch {
		case err != nil:
			return err
		case at.Name == "":
			return usagef("no mailbox: name it after the host, as in %s/orders", at.Shown)
		}
		d, err := at.Mailbox(ctx)
		if err != nil {
			return err
		}
		box, err := loop.Over[[]byte, []byte](broker.Config{Driver: d, Queue: at.Name, Clock: g.Now}, c)
		if err == nil {
			err = do(ctx, box, args)
		}
		return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}, groups...)
}

// isBroker reports whether a mailbox is named by a URL.
func isBroker(mailbox string) bool { return strings.Contains(mailbox, "://") }

// bodyFlag reads a body: --body, a file, or standard input.
type bodyFlag struct {
	text string
	fs   *pflag.FlagSet
}

func (b *bodyFlag) register(fs *pflag.FlagSet) {
	b.fs = fs
	fs.StringVar(&b.text, "body", "", "the body")
}

func (b *bodyFlag) read(*globals) error { return nil }

func (b *bodyFlag) body(ctx context.Context, g *globals, args []string) ([]byte, error) {
	in := g.In
	switch given := b.fs.Changed("body"); {
	case given && len(args) == 2:
		return nil, usagef("--body is the whole body: leave FILE out")
	case given:
		return []byte(b.text), nil
	case sourceOf(args) != stdinList:
		file, err := openInput(args[1])
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	case g.InTTY:
		g.say("nixie: reading from the terminal; end with Ctrl-D")
	}
	return io.ReadAll(io.LimitReader(interruptible{ctx, in}, nixie.MaxBody+1))
}

// sentView is the receipt of a message that was sent.
type sentView struct {
	ID nixie.ID `json:"id"`
}

func newMailboxSend(g *globals) *cobra.Command {
	var b bodyFlag
	var replyTo, requestID string
	args := arguments(1, 2, "wants a mailbox and at most one file, has %[2]d arguments: see %[1]s --help")
	cmd := g.inMailbox("mailbox send", args, false, func(ctx context.Context, box *rawMailbox, args []string) error {
		body, err := b.body(ctx, g, args)
		if err != nil {
			return err
		}
		var opts []nixie.Option
		if replyTo != "" {
			opts = append(opts, loop.ReplyTo(replyTo))
		}
		if requestID != "" {
			opts = append(opts, nixie.WithHeader(nixie.HeaderRequestID, requestID))
		}
		id, err := box.Send(ctx, body, opts...)
		return one(g, func(w io.Writer, v *sentView) { fmt.Fprintln(w, v.ID) })(sentView{id}, err)
	}, &b)
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "mailbox of the same store or server that takes the answers")
	cmd.Flags().StringVar(&requestID, "request-id", "", "what answers have as their request-id; default the ID")
	return cmd
}

// receivedView shows a received message.
type receivedView struct {
	ID         nixie.ID         `json:"id"`
	RequestID  string           `json:"request_id"`
	ReplyTo    *string          `json:"reply_to"` // mailbox that takes the answers
	Deliveries int              `json:"deliveries"`
	SentAt     office.Timestamp `json:"sent_at"`
	Headers    []nixie.Header   `json:"headers"`
	office.Bytes
}

func viewReceived(m *loop.Message[[]byte, []byte]) receivedView {
	v := receivedView{
		ID: m.ID(), RequestID: m.RequestID(), Deliveries: m.DeliveryCount(), SentAt: office.Timestamp{Time: m.EnqueuedAt()},
		Headers: append([]nixie.Header{}, m.Headers()...), Bytes: office.ViewBytes(m.Body),
	}
	if to := m.ReplyTo(); to != "" {
		v.ReplyTo = &to
	}
	return v
}

func newMailboxReceive(g *globals) *cobra.Command {
	most, wait, keep := 1, durationFlag(0), false
	cmd := g.inMailbox("mailbox receive", oneArg("mailbox"), true, func(ctx context.Context, box *rawMailbox, _ []string) error {
		got, err := box.Receive(ctx, loop.Max(most), loop.Wait(time.Duration(wait)))
		if err != nil {
			return err
		}
		views := make([]receivedView, len(got))
		for i, m := range got {
			views[i] = viewReceived(m)
		}
		shown := listed(g, "messages", []column[receivedView]{
			{name: "id"}, {name: "request", cell: func(v *receivedView) string { return v.RequestID }},
			{name: "reply to", cell: func(v *receivedView) string { return textOr(v.ReplyTo) }}, {name: "deliveries", show: asWide},
			{name: "age", cell: func(v *receivedView) string { return age(g.Now().Sub(v.SentAt.Time)) }},
			{name: "body", kind: flex, cell: func(v *receivedView) string { return bodyOr(v.Text) }},
		})(views, nil)
		// What was not printed, or is to be kept, others receive at once.
		ctx = context.WithoutCancel(ctx)
		for i := range got {
			m := got[i]
			if keep || shown != nil {
				m = got[len(got)-1-i] // the first one is then the first again
				err = m.Nack(ctx, 0)
			} else {
				err = m.Acknowledge(ctx)
			}
			shown = cmp.Or(shown, err)
		}
		return shown
	}, checked(func() error {
		switch {
		case most < 1 || most > loop.MaxReceive:
			return usagef("--max is %d: give a number from 1 to %d", most, loop.MaxReceive)
		case time.Duration(wait) > loop.MaxWait:
			return usagef("--wait is %s: give a time up to %s", time.Duration(wait), loop.MaxWait)
		}
		return nil
	}))
	cmd.Flags().IntVar(&most, "max", most, fmt.Sprintf("most messages, up to %d", loop.MaxReceive))
	cmd.Flags().Var(&wait, "wait", fmt.Sprintf("wait this long for the first one, up to %s (default not)", loop.MaxWait))
	cmd.Flags().BoolVar(&keep, "keep", false, "give them back at once, instead of acknowledging them")
	return cmd
}

// repliedView says what was answered.
type repliedView struct {
	ID        nixie.ID `json:"id"` // of the answer
	RequestID string   `json:"request_id"`
	ReplyTo   string   `json:"reply_to"`
}

func newMailboxReply(g *globals) *cobra.Command {
	var b bodyFlag
	var requestID string
	args := arguments(1, 2, "wants a mailbox and at most one file, has %[2]d arguments: see %[1]s --help")
	cmd := g.inMailbox("mailbox reply", args, true, func(ctx context.Context, box *rawMailbox, args []string) error {
		body, err := b.body(ctx, g, args)
		if err != nil {
			return err
		}
		got, err := box.Receive(ctx)
		switch {
		case err != nil:
			return err
		case len(got) == 0:
			return nixie.Errorf(nixie.CodeNotFound, "mailbox %s has no message that could be answered now", box.Name())
		}
		m := got[0]
		v := repliedView{RequestID: m.RequestID(), ReplyTo: m.ReplyTo()}
		if requestID != "" && requestID != v.RequestID {
			err = nixie.Errorf(nixie.CodeConflict, "the next message has request ID %s and not %s: look with --keep again",
				v.RequestID, requestID)
		} else {
			v.ID, err = m.Reply(ctx, body)
		}
		if err != nil {
			return errors.Join(err, m.Nack(context.WithoutCancel(ctx), 0))
		}
		return one(g, func(w io.Writer, v *repliedView) {
			fmt.Fprintf(w, "%s answers request %s in mailbox %s\n", v.ID, escapeLine(v.RequestID), escapeLine(v.ReplyTo))
		})(v, m.Acknowledge(context.WithoutCancel(ctx)))
	}, &b)
	cmd.Flags().StringVar(&requestID, "request-id", "", "answer only if the next message has this request ID")
	return cmd
}

// bodyOr shows a body in a table.
func bodyOr(text *string) string {
	if text == nil {
		return "(not text)"
	}
	return *text
}

// textOr shows what may be missing.
func textOr(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// queueView shows the counts of a queue of the store as those of a mailbox.
func (g *globals) queueView(ctx context.Context, st store.Store, name string) (v mailboxView, err error) {
	queues, err := st.Queues(ctx, store.QueueQuery{Names: []string{name}})
	if err != nil {
		return v, err
	}
	if len(queues) == 0 {
		return v, nixie.Errorf(nixie.CodeNotFound, "there is no queue %s: send to it, or correct its name", name)
	}
	q := &queues[0]
	v = mailboxView{
		Mailbox: name, Visible: q.Ready, Leased: q.Leased, Delayed: q.Scheduled + q.Blocked, Sent: q.Total, Retention: "forever",
	}
	if !q.OldestAt.IsZero() {
		seconds := int64(g.Now().Sub(q.OldestAt) / time.Second)
		v.OldestAgeS = &seconds
	}
	return v, nil
}

// purgeQueue removes up to most messages that wait in a queue of the store.
func (g *globals) purgeQueue(ctx context.Context, st store.Store, name string, most int64, told func(int64)) (all int64, err error) {
	for all < most {
		n, err := st.Purge(ctx, name, nixie.Filter{}, int(min(most-all, nixie.MaxBatch)), config.Actor(g.Env), "purge of mailbox "+name)
		all += int64(n)
		if told(all); err != nil || n == 0 {
			return all, err
		}
	}
	return all, nil
}

// counted completes a command on the counts of a mailbox, in Redis or in the store. It gets what
// looks at them, and what removes messages.
func (g *globals) counted(path string, do func(ctx context.Context, name string, look func() (mailboxView, error),
	purge func(most int64, told func(int64)) (int64, error)) error, groups ...flagGroup,
) *cobra.Command {
	overServer := func(ctx context.Context, m mailboxes) error {
		return do(ctx, m.name, func() (mailboxView, error) { return m.view(ctx, m.name) },
			func(most int64, told func(int64)) (int64, error) { return m.Purge(ctx, m.name, most, told) })
	}
	return g.command(g.described(path, oneArg("mailbox")), func(ctx context.Context, args []string) error {
		if isBroker(args[0]) {
			return g.onServer(ctx, args[0], true, overServer)
		}
		name := args[0]
		return g.withStore(app.Options{MustExist: true, Clock: g.Now}, func(st store.Store) error {
			return do(ctx, name, func() (mailboxView, error) { return g.queueView(ctx, st, name) },
				func(most int64, told func(int64)) (int64, error) { return g.purgeQueue(ctx, st, name, most, told) })
		})
	}, groups...)
}
