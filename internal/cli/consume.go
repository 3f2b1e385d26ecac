package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
)

// consumeFlags are the flags of nixie consume.
type consumeFlags struct {
	handling
	group, letters, retry, order string
	office, create               bool
	idle                         time.Duration
}

// noLetters is the --dlq of a consumer without a topic of letters.
const noLetters = "none"

func newConsume(g *globals) *cobra.Command {
	f := &consumeFlags{handling: handling{globals: g}}
	cmd := f.command(g.described("consume"), f.run)
	fs := cmd.Flags()
	f.register(fs, "the profile")
	fs.StringVarP(&f.group, "group", "g", "", "consumer group (needed)")
	fs.StringVar(&f.letters, "dlq", broker.DefaultLetters, "topic that takes letters, {source} standing for the topic, or "+noLetters)
	fs.BoolVar(&f.office, "office", false, "take letters into the dead letter office of the store as well")
	fs.StringVar(&f.retry, "retry", "", "stages on which retries wait, such as 5s,1m,10m or {source}-again=30s (default in the consumer)")
	fs.StringVar(&f.order, "order", string(broker.ProcessByKey), "what does not pass what: none, key, partition or strict")
	fs.BoolVar(&f.create, "create", false, "make topics of letters and retries that are missing")
	fs.DurationVar(&f.idle, "idle", 0, "end when there was nothing to do for so long, and nothing is left for the group; 0 is never")
	return cmd
}

func (f *consumeFlags) run(ctx context.Context, args []string, dash int) error {
	switch {
	case dash == 0 || len(args) == 0:
		return usagef("no topic: nixie consume kafka://HOST/TOPIC --group GROUP -- COMMAND [ARG…]")
	case dash < 0 || dash == len(args):
		return usagef("no command: give it after --, as in nixie consume kafka://HOST/TOPIC --group GROUP -- ./handle")
	case dash > 1:
		return usagef("%d topics: give one, and the command after --", dash)
	case f.group == "":
		return usagef("no group: give --group NAME, under which the broker remembers what is done")
	case f.letters == noLetters && !f.office:
		return usagef("letters go nowhere: give --dlq a topic, or --office")
	case f.idle < 0:
		return usagef("--idle is %s: give a positive duration, or 0 for never", f.idle)
	}
	from, err := f.consumption(args[0])
	if err != nil {
		return err
	}
	cfg, err := f.config(ctx, args[dash:])
	if err != nil {
		return err
	}
	if len(from.Stages) > 0 && !f.policy.given("backoff") {
		if cfg.Policy, err = cfg.Policy.With("backoff", delaysOf(from.Stages)); err != nil {
			return err
		}
	}
	cfg.Queues = []string{"records"} // only for the check below
	if _, err := runner.New(*cfg); err != nil {
		return err
	}
	return f.consume(ctx, from, cfg)
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

// consumption reads the flags about the broker.
func (f *consumeFlags) consumption(url string) (app.Consumption, error) {
	c := app.Consumption{
		URL: url, Group: f.group, Letters: f.letters, Order: broker.ProcessingOrder(f.order), Create: f.create,
		Warn: func(err error) { fmt.Fprintf(f.Err, "nixie: %s\n", escape(err.Error())) },
	}
	c.User, c.Password = config.KafkaLogin(f.Env)
	if f.letters == noLetters {
		c.Letters = ""
	}
	if f.retry == "" {
		return c, nil
	}
	var err error
	c.Stages, err = broker.ParseStages(f.retry)
	return c, err
}

// consume handles the records that the broker hands out.
func (f *consumeFlags) consume(ctx context.Context, from app.Consumption, cfg *runner.Config) (err error) {
	if f.office {
		st, err := f.open(ctx, app.Options{Owner: cfg.Owner})
		if err != nil {
			return err
		}
		defer f.close(st)
		from.Office = st
	} else if err := f.answer(ctx, nil); err != nil {
		return err
	}
	source, driver, topic, err := app.OpenConsumer(ctx, from)
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
	cfg.Queues = []string{topic}
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
		return err // the group may not know which records are done
	case err != nil:
		from.Warn(err)
	}
	return f.report(done)
}

// leaveLimit bounds the call that tells the group which records are done.
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
	switch {
	case done.Halted != "":
		return f.halted(done.Halted)
	case done.Left > 0:
		f.say("left to other members of group %s: %s, which they have, or vanished with", f.group, plural(done.Left, "record"))
		return exit(ExitLeft)
	case done.Dead > 0 && f.idle > 0:
		return exit(ExitPartly)
	}
	return nil
}
