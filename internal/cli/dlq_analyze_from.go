package cli

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
)

// elsewhere is --from: letters that lie on a broker are looked at there.
type elsewhere struct{ url string }

func (e *elsewhere) register(fs *pflag.FlagSet) {
	fs.StringVar(&e.url, "from", "", "look at what lies on a broker, such as kafka://host:9092/orders.dlq, without a store")
}

func (*elsewhere) read(*globals) error { return nil }

// lookAtOnce is the number of records that a look has in memory.
const lookAtOnce = 200

// lookElsewhere analyzes what lies on a broker. It takes nothing and remembers nothing there, and
// opens no store.
func (a *analyzing) lookElsewhere(ctx context.Context) error {
	if a.look.all {
		return usagef("--from looks at each letter: leave --all out")
	}
	if slices.ContainsFunc(a.choice.filter.Fingerprints, func(text string) bool { return strings.HasPrefix(text, filter.FamilyPrefix) }) {
		return usagef("family: is for letters of the office: with --from choose by fingerprint: or by other terms")
	}
	from, err := a.channelAt(a.elsewhere.url)
	if err != nil {
		return usagef("--from: %w", err)
	}
	thrifty()
	reader, err := from.Look(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	var census office.Census
	stopped := a.count(ctx, reader, from.System, &census)
	found := census.Analysis()
	if stopped != nil && (found.Letters == 0 || ctx.Err() != nil) {
		return stopped
	}
	a.takeIn = a.self() + " dlq adopt " + quote(from.Shown)
	return errors.Join(a.printed(&found), stopped) // some batches of a topic can be passed over only
}

// count counts the letters of a reader that are chosen. It gives each step back before the next
// one, so that no more than that is in memory.
func (a *analyzing) count(ctx context.Context, from broker.Reader, system string, census *office.Census) error {
	f, now, looked := office.Unresolved(a.choice.filter), a.Now(), 0
	for {
		records, err := from.Next(ctx, lookAtOnce)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			a.status("")
			return nil
		}
		for i, l := range adopted(system, records) {
			if err := refuseRetry(&records[i]); err != nil {
				return err
			}
			if !filter.MatchLetter(&f, &l, now) || a.choice.expr != nil && !a.choice.expr.Matches(&l) {
				continue
			}
			if err := census.Add(&l); err != nil {
				return nixie.Errorf(nixie.CodeOf(err), "%s: choose by --filter: %w", a.elsewhere.url, err)
			}
		}
		looked += len(records)
		a.status("%d looked at, about %d to go", looked, from.Left())
		if err := from.Done(ctx, nil); err != nil {
			return err
		}
	}
}

// adopted makes the letters of records, on all processors: to read a stack takes most of the time.
func adopted(system string, records []broker.Record) []nixie.Letter {
	letters := make([]nixie.Letter, len(records))
	workers := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for first := range workers {
		all.Go(func() {
			for i := first; i < len(records); i += workers {
				letters[i] = broker.Adopted(system, &records[i], "")
			}
		})
	}
	all.Wait()
	return letters
}
