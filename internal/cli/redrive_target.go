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
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// redriveTarget tells where a redrive goes and what it changes on the way. Other verbs have a nil
// target.
type redriveTarget struct {
	flags          *pflag.FlagSet
	to, quarantine string
	partition      string
	set, drop      []string
	pipe           string
	timeout        time.Duration
	stopAfter      string
	stop           redrive.Stop // parsed from stopAfter
	channel        app.Channel  // parsed from to
}

// defaultStopAfter is the share of letters that may die again before a redrive stops.
const defaultStopAfter = "10%"

func (t *redriveTarget) register(fs *pflag.FlagSet) {
	t.flags = fs
	fs.StringVar(&t.to, "to", "", "send to a broker, such as kafka://host:9092: back to the topic where each one died, "+
		"or to the one that the URL names; queue: to its queue in the store")
	fs.StringVar(&t.quarantine, "quarantine", "",
		"topic for what was redriven too often, such as {source}.quarantine (default: it stays)")
	fs.StringVar(&t.partition, "partition", partitionOriginal, "of a record that goes back to its topic: "+
		partitionOriginal+", where it died, while the topic has that; or "+partitionKey)
	fs.StringVar(&t.stopAfter, "stop-after", defaultStopAfter,
		"stop by itself when more than this share, or this many, of the redriven letters died again; none: go on")
	fs.StringArrayVar(&t.set, "set-header", nil, "set a header of what is redriven, as NAME=VALUE; can be repeated")
	fs.StringArrayVar(&t.drop, "drop-header", nil, "leave a header of what is redriven out; can be repeated")
	fs.StringVar(&t.pipe, "pipe", "", "redrive what a command makes of the body: "+
		"it gets it on standard input and writes the new one to standard output")
	durationVar(fs, &t.timeout, "pipe-timeout", 30*time.Second, "how long the command of --pipe may take")
}

func (t *redriveTarget) read(*globals) (err error) {
	if t.timeout <= 0 {
		return usagef("--pipe-timeout is a positive duration")
	}
	if t.partition != partitionOriginal && t.partition != partitionKey {
		return usagef("--partition is %q: give %s or %s", t.partition, partitionOriginal, partitionKey)
	}
	t.stop, err = parseStop(t.stopAfter)
	return err
}

// Values of --partition.
const (
	partitionOriginal = "original"
	partitionKey      = "key"
)

// checkPartition refuses --partition for what goes to no topic.
func (t *redriveTarget) checkPartition() error {
	if t.flags.Changed("partition") && (!t.sends() || !t.channel.Group) {
		return usagef("--partition is for what goes to a topic of Kafka: give --to or --from, or leave it out")
	}
	return nil
}

// whichPartition says to which partitions records go; "" if the broker has none.
func (t *redriveTarget) whichPartition() string {
	switch {
	case !t.sends() || !t.channel.Group:
		return ""
	case t.partition == partitionKey:
		return "each to the partition of its key"
	}
	return "each to the partition where it died, if it goes back to its topic and that still has it, else to that of its key"
}

// parseStop reads --stop-after.
func parseStop(text string) (redrive.Stop, error) {
	if text == "none" {
		return redrive.Stop{Share: -1}, nil
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		if n, err := strconv.ParseFloat(share, 64); err == nil && n > 0 && n <= 100 {
			return redrive.Stop{Share: n / 100}, nil
		}
	} else if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return redrive.Stop{After: int(n), Share: -1}, nil
	}
	return redrive.Stop{}, usagef("--stop-after is %q: give a share such as 10%%, or how many, such as 25, or none", text)
}

// channelAt parses the URL of a broker.
func (g *globals) channelAt(url string) (app.Channel, error) {
	user, password := config.BrokerLogin(g.Env, url)
	return app.ParseChannel(url, user, password)
}

// resolve parses --to.
func (t *redriveTarget) resolve(g *globals) (err error) {
	if !t.sends() {
		if t.quarantine != "" {
			return usagef("--quarantine is for what goes to a broker: give --to or --from")
		}
		return t.checkPartition()
	}
	if t.channel, err = g.channelAt(t.to); err != nil {
		return usagef("--to: %w", err)
	}
	return t.checkPartition()
}

// toQueue is the --to of letters that go to their queues in the store.
const toQueue = "queue"

// sends reports whether letters go to a broker.
func (t *redriveTarget) sends() bool { return t != nil && t.to != "" && t.to != toQueue }

// edits reports whether flags change letters on the way.
func (t *redriveTarget) edits() bool { return len(t.set)+len(t.drop) > 0 || t.pipe != "" }

// attach gives an operation its destination and its edits. End releases what they use.
func (t *redriveTarget) attach(ctx context.Context, g *globals, work *office.OperationRequest) (end func(), err error) {
	work.Stop = t.stop
	var route redrive.Destination
	switch {
	case t.sends():
		if route, end, err = t.route(ctx, g); err != nil {
			return nil, err
		}
		route.MaxRedrives, work.SetsAside = work.MaxRedrives, route.Quarantine != ""
		work.Send, err = route.Letters()
	case t.edits():
		if route, end, err = t.changes(g); err != nil {
			return nil, err
		}
		work.Batch = t.batch()
		work.Edit, err = route.Edits()
	default:
		return func() {}, nil
	}
	if err != nil {
		end()
	}
	return end, err
}

// batch returns a small batch when each letter takes its time; 0 is the default.
func (t *redriveTarget) batch() int {
	if t.pipe != "" {
		return 20
	}
	return 0
}

// route returns the route of the flags. Its publisher runs until end is called.
func (t *redriveTarget) route(ctx context.Context, g *globals) (r redrive.Destination, end func(), err error) {
	r, unguard, err := t.changes(g)
	if err != nil {
		return r, nil, err
	}
	to, err := t.channel.Connect()
	if err != nil {
		unguard()
		return r, nil, err
	}
	publisher := g.fastStop(ctx, to)
	r.To = publisher
	return r, func() {
		publisher.end()
		to.Close()
		unguard()
	}, nil
}

// changes returns a route without its broker. End releases what it uses.
func (t *redriveTarget) changes(g *globals) (r redrive.Destination, end func(), err error) {
	r = redrive.Destination{Channel: t.channel.Name, Quarantine: t.quarantine, Drop: t.drop, Clock: g.Now,
		ByKey: t.partition == partitionKey}
	for _, text := range t.set {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return r, nil, usagef("--set-header is %q: give it as NAME=VALUE", text)
		}
		r.Set = append(r.Set, broker.RecordHeader{Name: name, Value: []byte(value)})
	}
	if t.pipe == "" {
		return r, func() {}, nil
	}
	pipe, err := newHook("pipe", t.pipe, t.timeout)
	if err != nil {
		return r, nil, err
	}
	if err := pipe.guard(g); err != nil {
		return r, nil, err
	}
	r.Transform = pipe.transform
	return r, pipe.end, nil
}

// transform replaces the body by the output of the --pipe command. When the command fails the
// letter is refused.
func (h *hook) transform(ctx context.Context, r *broker.Returning) error {
	var out capped
	if err := h.run(ctx, r.Value, &out,
		command.Field{Name: "NIXIE_LETTER", Value: r.Letter.String()},
		command.Field{Name: "NIXIE_KEY", Value: string(bytes.ReplaceAll(r.Key, []byte{0}, nil))},
		command.Field{Name: "NIXIE_TOPIC", Value: r.Origin.Channel}); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "--pipe: %w", err)
	}
	if was, is := items.Rounded(r.Value, out.data); was != "" {
		return nixie.Errorf(nixie.CodeInvalid, "--pipe: the command rounds %.40s to %.40s: take one that keeps numbers, as jq does "+
			"from version 1.7 on where it computes nothing", was, is)
	}
	if r.Value = out.data; r.Value == nil {
		r.Value = []byte{}
	}
	return nil
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

// destined records the destination of the operation. It refuses to queue letters that came from a
// broker unless --to says so.
func (t *redriveTarget) destined(ctx context.Context, o *office.Office, work *office.OperationRequest) error {
	if t.to != "" {
		work.Destination = t.whereTo()
		return nil
	}
	letters, _, err := o.Letters(ctx, work.EffectiveFilter(), store.Page{Limit: 100})
	if err != nil {
		return err
	}
	for i := range letters {
		from := letters[i].Message.Origin
		if from == nil || app.WayBack(from.System) == "" {
			continue
		}
		return usagef("letter %s came from %s of %s: --to %s sends it back there, --to queue puts it into queue %s of the store",
			letters[i].ID, from.Channel, from.System, app.WayBack(from.System), letters[i].Message.Queue)
	}
	return nil
}

// destination returns --to without user and password.
func (t *redriveTarget) destination() string {
	if t.sends() {
		return t.channel.Shown
	}
	return t.to
}

// whereTo writes the destination for the record of an operation.
func (t *redriveTarget) whereTo() string {
	if t.quarantine == "" {
		return t.destination()
	}
	return t.destination() + " --quarantine " + t.quarantine
}

// same refuses to go on with an operation that has another destination.
func (t *redriveTarget) same(op *store.Operation) error {
	if op.Destination != t.whereTo() {
		return usagef("operation %s goes to %s: give --to so, with the headers and the --pipe that it began with",
			op.ID, cmp.Or(op.Destination, "the queues of the store, without --to"))
	}
	return nil
}

// words writes the flags to be typed again, without user and password.
func (t *redriveTarget) words() (words []string) {
	if t.stopAfter != defaultStopAfter {
		words = append(words, "--stop-after", t.stopAfter)
	}
	if t.to != "" {
		words = append(words, "--to", quote(t.destination()))
	}
	return append(words, typedFlags(t.flags, "quarantine", "partition", "set-header", "drop-header", "pipe")...)
}
