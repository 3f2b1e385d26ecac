package storetest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Build is a build of this program whose stores store/testdata/builds.sh has made.
type Build struct {
	Name    string // a release, or a commit
	Refused bool   // this program does not open its stores
}

// Builds returns those whose stores are in the folders testdata/builds. Each release adds its own.
func Builds() []Build {
	return []Build{
		{"b579487b", true}, {"b611378a", true}, {"d7cfff43", true}, {"537b58e9", true},
		{"frozen", false}, // the one that froze the first migrations
		{"patience", false},
	}
}

// Run tries each verb on a store that the build made. It works, or it is refused: the text says
// that another build made the store, and what to do.
func (b Build) Run(t *testing.T, open func(context.Context) (store.Store, error), schema store.Schema) {
	for _, v := range buildVerbs {
		b.try(t, v.name, func(ctx context.Context) (err error) {
			st, err := open(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, st.Close()) }()
			return v.do(ctx, st)
		})
	}
	b.try(t, "migrate status", func(ctx context.Context) error {
		_, err := schema.Migrations(ctx)
		return err
	})
	b.try(t, "migrate up", func(ctx context.Context) error {
		_, err := schema.Up(ctx, 0, store.Grants{})
		return err
	})
	t.Run("migrate validate", func(t *testing.T) {
		found, err := schema.Validate(t.Context())
		if err != nil || (len(found) > 0) != b.Refused {
			t.Errorf("told %v, with the differences %v", err, found)
		}
		t.Logf("compared: %d differences", len(found))
	})
	if b.Refused {
		b.try(t, "migrate down", func(ctx context.Context) error {
			_, err := schema.Down(ctx, 0, true)
			return err
		})
	}
}

var refusal = regexp.MustCompile(
	`was made by another build \(its schema has \d+ differences, such as .+\): export it with that one \(nixie dlq export\) and import`)

// try expects that a verb works, or that it is refused in words.
func (b Build) try(t *testing.T, verb string, do func(context.Context) error) {
	t.Run(verb, func(t *testing.T) {
		err := do(t.Context())
		switch {
		case !b.Refused && err != nil:
			t.Errorf("told %v", err)
		case !b.Refused:
			t.Log("opened")
		case !errors.Is(err, store.ErrAnotherBuild) || nixie.CodeOf(err) != nixie.CodeInvalid || !refusal.MatchString(err.Error()):
			t.Errorf("told %v", err)
		default:
			t.Logf("refused: %v", err)
		}
	})
}

// buildVerbs use what a build left: letters b and c in queue list, of which c was redriven, and in
// queue orders a message that is due and one that is not.
var buildVerbs = []struct {
	name string
	do   func(context.Context, store.Store) error
}{
	{"letters", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{Whole: true})
		return wants(err, len(list) == 2 && len(list[0].History) == 1)
	}},
	{"count", func(ctx context.Context, st store.Store) error {
		groups, _, err := st.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}})
		return wants(err, len(groups) == 1 && len(groups[0]) == 1 && groups[0][0].Count == 2)
	}},
	{"messages", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Messages(ctx, nixie.Filter{}, store.Page{})
		return wants(err, len(list) == 5)
	}},
	{"queues", func(ctx context.Context, st store.Store) error {
		list, err := st.Queues(ctx, store.QueueQuery{})
		return wants(err, len(list) == 2)
	}},
	{"operations", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Operations(ctx, store.OperationQuery{}, store.Page{})
		return wants(err, len(list) == 1 && list[0].Done == 1)
	}},
	{"audit", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Audit(ctx, store.AuditFilter{}, store.Page{})
		return wants(err, len(list) == 4)
	}},
	{"check", func(ctx context.Context, st store.Store) error {
		report, err := st.Features().Check(ctx)
		return wants(err, len(report.Violations) == 0)
	}},
	{"inspect", func(ctx context.Context, st store.Store) error {
		h, err := st.Features().Inspect(ctx)
		return wants(err, h.Schema == h.KnownSchema)
	}},
	{"enqueue", func(ctx context.Context, st store.Store) error {
		_, err := st.Enqueue(ctx, nixie.Message{Queue: "more"})
		return err
	}},
	{"adjust", func(ctx context.Context, st store.Store) error {
		_, err := st.Adjust(ctx, "more", "test", "test", func(s *nixie.QueueSettings) error { s.Paused = true; return nil })
		return err
	}},
	{"claim and settle", func(ctx context.Context, st store.Store) error {
		ds, err := st.Claim(ctx, "orders", nixie.Want{Max: 1, Lease: time.Minute}) // both are due, an hour after the build
		if err = wants(err, len(ds) > 0); err != nil {
			return err
		}
		err = errors.Join(st.Extend(ctx, ds, time.Minute)...)
		return errors.Join(err, errors.Join(st.Settle(ctx, []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})...))
	}},
	{"amend", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Messages(ctx, nixie.Filter{Queues: []string{"orders"}}, store.Page{})
		i := slices.IndexFunc(list, func(m store.Record) bool { return m.State == nixie.Queued })
		if err = wants(err, i >= 0); err != nil {
			return err
		}
		return errors.Join(st.Amend(ctx, []nixie.ID{list[i].ID}, store.Change{Verb: store.Cancel, Actor: "test"})...)
	}},
	{"resolve", func(ctx context.Context, st store.Store) error {
		list, _, err := st.Letters(ctx, nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, store.Page{})
		if err = wants(err, len(list) == 1); err != nil {
			return err
		}
		return errors.Join(st.Resolve(ctx, []store.Resolution{{Letter: list[0].ID, Event: store.OnRedrive, Actor: "test"}})...)
	}},
	{"purge", func(ctx context.Context, st store.Store) error {
		_, err := st.Purge(ctx, "more", nixie.Filter{}, 1, "test", "test")
		return err
	}},
	{"prune", func(ctx context.Context, st store.Store) error {
		_, err := st.Prune(ctx, store.Pruning{})
		return err
	}},
}

// errUnlike says that a verb does not find what the build left.
var errUnlike = errors.New("the store has not what the build left")

func wants(err error, found bool) error {
	if err == nil && !found {
		return errUnlike
	}
	return err
}

// Frozen expects these hashes of migrations, oldest first.
func Frozen(t *testing.T, list []store.Migration, hashes ...string) {
	t.Helper()
	if len(list) != len(hashes) {
		t.Errorf("%d migrations, and %d hashes: each is frozen when it is first released", len(list), len(hashes))
	}
	for i := range min(len(list), len(hashes)) {
		if list[i].Hash != hashes[i] {
			t.Errorf("migration %d has hash %s, and stores were made by %s: write a new one instead of changing it",
				list[i].Version, list[i].Hash, hashes[i])
		}
	}
}
