package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// sending are the flags of a redrive to a broker.
type sending struct {
	to, quarantine, pipe string
	set, drop            []string
	timeout              time.Duration
	after                string // so many may die again

	channel app.Channel // of to
	guard   *command.Guard
}

func (s *sending) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.to, "to", "", "send to a broker, such as kafka://host:9092: back to the topic where each one died, or to the one that the URL names; queue: to its queue in the store")
	fs.StringVar(&s.quarantine, "quarantine", "", "topic for what was redriven too often, such as {source}.quarantine (default: it stays)")
	fs.StringVar(&s.after, "stop-after", stopAfter, "stop by itself when more than this share, or so many, of what was redriven died again; none: go on")
	fs.StringArrayVar(&s.set, "set-header", nil, "set a header of what is redriven, as NAME=VALUE; can be repeated")
	fs.StringArrayVar(&s.drop, "drop-header", nil, "leave a header of what is redriven out; can be repeated")
	fs.StringVar(&s.pipe, "pipe", "", "redrive what a command makes of the body: it gets it on standard input and writes the new one to standard output")
	fs.DurationVar(&s.timeout, "pipe-timeout", 30*time.Second, "how long the command of --pipe may take")
}

// stopAfter is when a redrive stops by itself, unless said otherwise.
const stopAfter = "10%"

// stop reads --stop-after.
func (s *sending) stop() (redrive.Stop, error) {
	if s.after == "none" {
		return redrive.Stop{Share: -1}, nil
	}
	if share, ok := strings.CutSuffix(s.after, "%"); ok {
		if n, err := strconv.ParseFloat(share, 64); err == nil && n > 0 && n <= 100 {
			return redrive.Stop{Share: n / 100}, nil
		}
	} else if n, err := strconv.ParseInt(s.after, 10, 32); err == nil && n > 0 {
		return redrive.Stop{After: int(n), Share: -1}, nil
	}
	return redrive.Stop{}, usagef("--stop-after is %q: give a share such as 10%%, or how many, such as 25, or none", s.after)
}

// broker reads the URL of one.
func (g *globals) broker(url string) (app.Channel, error) {
	user, password := config.KafkaLogin(g.Env)
	return app.ParseChannel(url, user, password)
}

// toQueue says outright that letters go to their queues in the store.
const toQueue = "queue"

// sends reports whether letters go to a broker.
func (s *sending) sends() bool { return s.to != "" && s.to != toQueue }

// edits reports whether what is redriven is changed.
func (s *sending) edits() bool { return len(s.set)+len(s.drop) > 0 || s.pipe != "" }

func (s *sending) check(g *globals) (err error) {
	switch {
	case !s.sends() && s.quarantine != "":
		return usagef("--quarantine is for what goes to a broker: give --to or --from")
	case s.timeout <= 0:
		return usagef("--pipe-timeout is a positive duration")
	case !s.sends():
		return nil
	}
	s.channel, err = g.broker(s.to)
	if err != nil {
		return usagef("--to: %w", err)
	}
	return nil
}

// route is what the flags say, with a publisher that end ends.
func (s *sending) route(ctx context.Context, g *globals) (r redrive.Route, end func(), err error) {
	r, unguard, err := s.changes(g)
	if err != nil {
		return r, nil, err
	}
	to, err := s.channel.Connect()
	if err != nil {
		unguard()
		return r, nil, err
	}
	hurried := g.hurry(ctx, to)
	r.To = hurried
	return r, func() {
		hurried.end()
		to.Close()
		unguard()
	}, nil
}

// changes is what the flags say of a route but for its broker; end ends what runs for it.
func (s *sending) changes(g *globals) (r redrive.Route, end func(), err error) {
	r = redrive.Route{Channel: s.channel.Name, Quarantine: s.quarantine, Drop: s.drop, Clock: g.Now}
	for _, text := range s.set {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return r, nil, usagef("--set-header is %q: give it as NAME=VALUE", text)
		}
		r.Set = append(r.Set, broker.RecordHeader{Name: name, Value: []byte(value)})
	}
	if s.pipe != "" {
		if r.Transform, err = s.piped(); err != nil {
			return r, nil, err
		}
	}
	if s.pipe == "" {
		return r, func() {}, nil
	}
	if s.guard, err = g.guard("pipe"); err != nil {
		return r, nil, err
	}
	return r, func() { s.guard.Close() }, nil //nolint:errcheck // every command has ended
}

// piped makes the body what a command makes of it. A command that fails refuses the
// letter.
func (s *sending) piped() (func(context.Context, *broker.Returning) error, error) {
	args, path, err := command.Words(s.pipe)
	if err != nil {
		return nil, usagef("--pipe: %w", err)
	}
	env := command.NewEnvironment(config.Inherited())
	return func(ctx context.Context, r *broker.Returning) error {
		var out capped
		result, err := command.Run(ctx, command.Spec{
			Args: args, Path: path, Stdin: r.Value, Stdout: &out, Timeout: s.timeout, Guard: s.guard,
			Env: env.With(command.Field{Name: "NIXIE_LETTER", Value: r.Letter.String()}, command.Field{Name: "NIXIE_KEY", Value: string(bytes.ReplaceAll(r.Key, []byte{0}, nil))}, command.Field{Name: "NIXIE_TOPIC", Value: r.Origin.Channel}),
		})
		if err == nil {
			err = result.Err(nil)
		}
		if err != nil {
			return nixie.Errorf(nixie.CodeInvalid, "--pipe: %w", err)
		}
		r.Value = out.data
		if r.Value == nil {
			r.Value = []byte{}
		}
		return nil
	}, nil
}

// capped keeps an output up to the largest body.
type capped struct{ data []byte }

var errOutput = errors.New("the command of --pipe wrote more than a body may have")

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	if len(c.data)+len(p) > nixie.MaxBody {
		return 0, errOutput
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

// destined refuses to queue what came from a broker unless that is said outright,
// and says the destination of the work.
func (s *sending) destined(ctx context.Context, o *office.Office, work *office.OperationRequest) error {
	if s.to != "" {
		work.Destination = s.whereTo()
		return nil
	}
	letters, _, err := o.Letters(ctx, work.EffectiveFilter(), store.Page{Limit: looked})
	if err != nil {
		return err
	}
	for i := range letters {
		if from := letters[i].Message.Origin; from != nil && from.System == "kafka" {
			return usagef("letter %s came from topic %s: --to kafka://HOST sends it back there, --to queue puts it into queue %s of the store",
				letters[i].ID, from.Channel, letters[i].Message.Queue)
		}
	}
	return nil
}

// looked is how many letters are asked where they came from.
const looked = 100

// destination is --to without what gets in.
func (s *sending) destination() string {
	if s.sends() {
		return s.channel.Shown
	}
	return s.to
}

// whereTo is what an operation says of where letters go.
func (s *sending) whereTo() string {
	if s.quarantine == "" {
		return s.destination()
	}
	return s.destination() + " --quarantine " + s.quarantine
}

// same refuses to go on with an operation to somewhere else.
func (s *sending) same(op *store.Operation) error {
	if op.Destination != s.whereTo() {
		return usagef("operation %s goes to %s: give --to so, with the headers and the --pipe that it began with", op.ID, cmp.Or(op.Destination, "the queues of the store, without --to"))
	}
	return nil
}

// words are the flags, to be typed again; what gets in is left to the environment.
func (s *sending) words() (words []string) {
	if s.after != stopAfter {
		words = append(words, "--stop-after", s.after)
	}
	if s.to != "" {
		words = append(words, "--to", quote(s.destination()))
	}
	if s.quarantine != "" {
		words = append(words, "--quarantine", quote(s.quarantine))
	}
	for _, h := range s.set {
		words = append(words, "--set-header", quote(h))
	}
	for _, h := range s.drop {
		words = append(words, "--drop-header", quote(h))
	}
	if s.pipe != "" {
		words = append(words, "--pipe", quote(s.pipe))
	}
	return words
}
