package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQRedrive(g *globals) *cobra.Command {
	l := &letterBulk{bulk: bulk{globals: g, required: true}, event: nixie.OnRedrive, done: "redriven", target: &redriveTarget{}}
	topic := &topicRedrive{letterBulk: l}
	return g.command(&cobra.Command{
		Use:   "redrive [ID…]",
		Short: "Send letters on their way again",
		Long:  redriveHelp,
		Example: `  nixie dlq redrive order-4711 --reason 'address mended'
  nixie dlq redrive --filter 'queue:orders reason:timeout' --max 10 --reason 'canary' --dry-run
  nixie dlq redrive --filter 'fingerprint:v2-0123456789abcdef' --rate 50 --reason 'fixed in 1.4.2' --yes
  nixie dlq redrive --all --rate 10 --stop-after 5 --reason 'the bank is back' --yes
  nixie dlq redrive --filter 'queue:orders reason:validation' --pipe 'jq .amount=0' --reason 'no amount' --yes
  nixie dlq redrive --resume 01890a5d-ac96-774b-bcce-b302099a8057 --rate 50 --yes
  nixie dlq redrive --filter 'queue:orders' --to kafka://localhost:9092 --reason 'mended' --yes
  nixie dlq redrive --from kafka://localhost:9092/orders.dlq --filter 'reason:timeout' --max 100 --yes`,
		Args: cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error {
		switch {
		case topic.from != "":
			return topic.run(ctx, args)
		case topic.group != "":
			return usagef("--group is for --from")
		}
		if err := l.target.resolve(g); err != nil {
			return err
		}
		return l.run(ctx, args)
	}, l, l.target, topic)
}

const redriveHelp = `Queues the messages of letters again, oldest death first: by IDs, by --filter, or
--all. Only open letters are chosen; with --force also those in review, and what
is not redrivable goes too. A letter that was redriven --max-redrives times is
skipped. --max counts letters that go.

--header chooses by the headers of the sender, with --filter or alone.

--set-header, --drop-header and --pipe change what is redriven. A letter of the store
is edited in the commit that queues it: the audit has who and the hashes before and
after, and dlq show what it said before its first edit. One that the command of --pipe
fails for stays as it is. --dry-run runs the command too, to say what it would change.

The selection is frozen before the first letter moves, so an operation that was
stopped goes on with --resume, and no letter is redriven twice. --dry-run shows
exactly what would happen.

--to kafka://HOST sends letters to a broker instead: each back to the topic where it
died, or all to the topic that the URL names. Key, body and headers of the sender
arrive as they were but for what flags change, and the letter stays as it is. Each has one x-redrive-count and x-redriven-at, and an
x-redrive-id that is the same should one redrive be repeated. A letter is resolved
when the broker has confirmed its record. What was redriven --max-redrives times goes
to the topic of --quarantine, if there is one, with all it died of.

A broker that takes records and does not answer is waited for. An interrupt ends that
after 10 seconds, another one at once: what has no answer is not done with, and goes
again under the same x-redrive-id.

--from kafka://HOST/TOPIC redrives what lies on a dead letter topic, without an
office, back to where each one died or as --to says. It remembers under --group what
it has sent, so it can be stopped and run again; what a filter or --header does not
choose, or what is refused, stays for the next run. Letters that the store has as well
are resolved there, and what the office has redriven is not sent again.

--dry-run with a --reason keeps the selection and prints a token: --token moves exactly
those letters, and names and skips what has changed since. --wait goes on until each
letter has an outcome: it succeeded, died of the same failure or of a new one, or is
still on its way when the time is over. --resume with --again also takes up what died
again in that operation. What is left for want of --force is said with the command.

A redrive stops by itself when what it moved dies again while it runs, and leaves the
rest as it is: when more than --stop-after of that did, of 10 and more; or so many,
where --stop-after is a number. --stop-after none goes on whatever happens. It looks
at each outcome: the first ten go alone, and more go as those succeed, until a hundred
have. Where nobody works on them the rest goes after a second. Who goes on has mended
something: only what is moved and dies from then on counts. What went to a broker has x-redrive-operation, and counts when its letter comes to the
office, or with --from onto the topic that it came from; no other is seen.

` + brokerHelp + `

Exit codes: 0 all redriven (also when nothing matches), 5 some were skipped or
have failed, or it stopped by itself, or with --wait some died again or are still on
their way, 130 interrupted.`
