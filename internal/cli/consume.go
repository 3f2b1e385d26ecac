package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/runner"
)

// consumeFlags are the flags of nixie consume.
type consumeFlags struct {
	handling
	from                         app.Channel
	group, letters, retry, order string
	office, create               bool
	idle                         time.Duration
}

// noLetters is the --dlq of a consumer without a channel of letters.
const noLetters = "none"

func newConsume(g *globals) *cobra.Command {
	f := &consumeFlags{handling: handling{globals: g}}
	cmd := f.command(g.described("consume"), f.run)
	fs := cmd.Flags()
	f.register(fs, "the profile")
	f.registerReply(fs)
	f.registerPersistent(fs)
	fs.StringVarP(&f.group, "group", "g", "", "consumer group; a topic needs one")
	fs.StringVar(&f.letters, "dlq", broker.DefaultLetters,
		"topic, mailbox or queue that takes letters, {source} standing for the one of the records, or "+noLetters)
	fs.BoolVar(&f.office, "office", false, "take letters into the dead letter office of the store as well")
	fs.StringVar(&f.retry, "retry", "", "stages on which retries wait, such as 5s,1m,10m or {source}-again=30s (default in the consumer)")
	fs.StringVar(&f.order, "order", string(broker.ProcessByKey), "what does not pass what: none, key, partition or strict")
	fs.BoolVar(&f.create, "create", false,
		"make what is missing: topics or queues of letters and retries, or the mailbox and that of letters")
	durationVar(fs, &f.idle, "idle", 0, "end when there was nothing to do for so long, and nothing is left; 0 is never")
	return cmd
}

func (f *consumeFlags) run(ctx context.Context, args []string, dash int) error {
	switch {
	case dash == 0 || len(args) == 0:
		return usagef("no topic: nixie consume kafka://HOST/TOPIC --group GROUP -- COMMAND [ARG…]; " +
			"or redis://HOST/MAILBOX, or rabbitmq://HOST/QUEUE")
	case dash < 0 || dash == len(args):
		return usagef("no command: give it after --, as in nixie consume kafka://HOST/TOPIC --group GROUP -- ./handle")
	case dash > 1:
		return usagef("%d topics: give one, and the command after --", dash)
	case f.letters == noLetters && !f.office:
		return usagef("letters go nowhere: give --dlq a topic, or --office")
	case f.idle < 0:
		return usagef("--idle is %s: give a positive duration, or 0 for never", f.idle)
	}
	var err error
	if f.from, err = f.channelAt(args[0]); err != nil {
		return err
	}
	want, err := f.consumption()
	if err != nil {
		return err
	}
	if f.idle == 0 {
		f.endless = "--idle"
	}
	cfg, err := f.config(ctx, args[dash:])
	if err != nil {
		return err
	}
	if len(want.Stages) > 0 {
		// Stages are a limit that is meant.
		for name, value := range map[string]string{"backoff": delaysOf(want.Stages), "min-age": "none"} {
			if f.policy.given(name) {
				continue
			}
			if cfg.Policy, err = cfg.Policy.With(name, value); err != nil {
				return err
			}
		}
	}
	if cfg.Answers, err = f.answers(broker.ChannelName(want.Letters, f.from.Name)); err != nil {
		return err
	}
	if want.Limits, err = limitsOf(cfg); err != nil {
		return err
	}
	cfg.Queues = []string{"records"} // only for the check below
	if _, err := runner.New(*cfg); err != nil {
		return err
	}
	return f.consume(ctx, want, cfg)
}

// delaysOf returns a backoff that lets the first retry wait on the first stage, the second on the
// second.
func delaysOf(stages []broker.Stage) string {
	var delays []string
	for _, s := range stages {
		delays = append(delays, s.Delay.String())
	}
	return "list delays=" + strings.Join(delays, ",") + " cap=none jitter=none"
}

// limitsOf returns what settings of a broker are compared with.
func limitsOf(c *runner.Config) (broker.Limits, error) {
	p, err := c.Policy.Policy()
	if err != nil {
		return broker.Limits{}, err
	}
	values := p.Config()
	return broker.Limits{Attempt: c.Timeout, Wait: values.Backoff.Ceiling(math.MaxInt32), Deliveries: values.MaxDeliveries,
		Age: values.MaxAge}, nil
}

// consumption reads the flags about the broker, and refuses what it cannot do.
func (f *consumeFlags) consumption() (*app.Consumption, error) {
	c := &app.Consumption{
		Group: f.group, Letters: f.letters, Order: broker.ProcessingOrder(f.order), Create: f.create,
		Profile: *f.policy.one["profile"],
		Warn:    func(err error) { fmt.Fprintf(f.Err, "nixie: %s\n", escape(err.Error())) },
	}
	if f.letters == noLetters {
		c.Letters = ""
	}
	if f.retry != "" {
		var err error
		if c.Stages, err = broker.ParseStages(f.retry); err != nil {
			return nil, err
		}
	}
	return c, f.from.Suits(c)
}

// consume handles the records that the broker hands out.
func (f *consumeFlags) consume(ctx context.Context, want *app.Consumption, cfg *runner.Config) (err error) {
	if f.office {
		st, err := f.open(ctx, app.Options{Owner: cfg.Owner})
		if err != nil {
			return err
		}
		defer f.close(st)
		want.Office = st
	} else if err := f.answer(ctx, nil); err != nil {
		return err
	}
	source, driver, err := app.OpenConsumer(ctx, &f.from, want)
	if err != nil {
		return err
	}
	open := true
	shut := func() error {
		if !open {
			return nil
		}
		open = false
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
		defer cancel()
		return driver.Close(ending)
	}
	defer func() { err = errors.Join(err, shut()) }()
	cfg.Queues = []string{f.from.Name}
	r, err := runner.New(*cfg)
	if err != nil {
		return err
	}
	var done runner.Consumed
	if err := f.drive(ctx, r, true, func(ctx context.Context) (err error) {
		done, err = r.Consume(ctx, source, f.idle)
		return err
	}); err != nil {
		return err
	}
	switch err := shut(); {
	case nixie.CodeOf(err) == nixie.CodeOutcomeUnknown:
		return err // the broker may not know which records are done
	case err != nil:
		want.Warn(err)
	}
	return f.report(done)
}

// leaveLimit bounds the call that tells the broker which records are done.
const leaveLimit = 30 * time.Second

// report prints the summary and returns how the process ends.
func (f *consumeFlags) report(done runner.Consumed) error {
	if err := f.summary(done, func(w io.Writer) {
		fmt.Fprintf(w, "%d succeeded, %d retried, %d dead, %d discarded (%s)\n",
			done.Succeeded, done.Retried, done.Dead, done.Discarded, plural(done.Attempts, "attempt"))
		if done.Dead > 0 && f.office {
			fmt.Fprintf(w, "\nNext:\n  %s\n", f.analyze(done.Channel))
		}
	}); err != nil {
		return err
	}
	if done.Why == "" && done.Left > 0 {
		others := "other consumers of mailbox " + f.from.Name
		if f.from.Group {
			others = "other members of group " + f.group
		}
		f.say("left to %s: %s, which they have, or vanished with", others, plural(done.Left, "record"))
		return exit(ExitLeft)
	}
	return f.conclude(done.End, done.Dead > 0 && f.idle > 0)
}
