package redis

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// act is a call about one record. Its answer tells whether it took effect.
type act struct {
	verb, id, token string
}

// lineState describes one record: the token of its lease (empty: it is visible),
// whether the lease has ended, and whether the record is gone.
type lineState struct {
	token      string
	over, gone bool
}

// step tells whether a call may have had its effect in a state, and the state after it. A record
// whose lease has ended stays with its holder until another receiver looks.
func (s lineState) step(a act, worked bool) (bool, lineState) {
	mine := !s.gone && s.token == a.token
	switch a.verb {
	case "receive":
		return !s.gone && (s.token == "" || s.over), lineState{token: a.token}
	case "end":
		s.over = s.token != ""
		return true, s
	}
	switch {
	case mine && s.over && !worked: // another receiver looked for ended leases, and did not take this one
		return true, lineState{}
	case worked != mine:
		return false, s
	case !worked:
		return true, s
	case a.verb == "ack":
		return true, lineState{gone: true}
	case a.verb == "nack":
		return true, lineState{}
	}
	s.over = false // it was extended
	return true, s
}

var mailboxModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byID := map[string][]porcupine.Operation{}
		for _, o := range history {
			byID[o.Input.(act).id] = append(byID[o.Input.(act).id], o)
		}
		var all [][]porcupine.Operation
		for _, one := range byID {
			all = append(all, one)
		}
		return all
	},
	Init: func() any { return lineState{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(lineState).step(input.(act), output.(bool))
	},
}

// history notes what several receivers do at once.
type history struct {
	mu    sync.Mutex
	ops   []porcupine.Operation
	began time.Time
}

func (h *history) note(client int, called int64, a act, worked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Call: called, Return: h.now(), Input: a, Output: worked})
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// Each record has one holder at a time, though several receivers work at once and leases end
// meanwhile.
func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	const records, receivers, acts = 60, 4, 150
	for seed := range uint64(3) {
		f, h := actual(t), &history{began: time.Now()}
		f.produce(t, records, func(int) string { return fine })
		var all sync.WaitGroup
		for client := range receivers {
			d := f.open(t, Config{})
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			all.Go(func() {
				for range acts {
					h.play(t, f, d, client, rng)
				}
			})
		}
		all.Wait()
		if !porcupine.CheckOperations(mailboxModel, h.ops) {
			t.Errorf("seed %d: no order of %d calls explains their answers", seed, len(h.ops))
		}
	}
}

// play receives a few records, does something with each, and then once more: that is late.
func (h *history) play(t *testing.T, f *fixture, d *Driver, client int, rng *rand.Rand) {
	called := h.now()
	got, err := d.Receive(t.Context(), broker.Want{Max: 1 + rng.IntN(3), Lease: time.Minute})
	if err != nil {
		t.Error(err)
	}
	for _, r := range got {
		h.note(client, called, act{"receive", r.MessageID, string(r.Receipt.(receipt))}, true)
	}
	for n := range got {
		for range 2 {
			h.settle(t, f, d, client, rng, &got[n])
		}
	}
}

func (h *history) settle(t *testing.T, f *fixture, d *Driver, client int, rng *rand.Rand, r *broker.Record) {
	a := act{[]string{"ack", "nack", "extend", "end"}[rng.IntN(8)%4], r.MessageID, string(r.Receipt.(receipt))}
	called := h.now()
	list := []*broker.Record{r}
	var err error
	switch a.verb {
	case "ack":
		err = d.Ack(t.Context(), list)[0]
	case "nack":
		err = d.Nack(t.Context(), []broker.Return{{Record: r, As: broker.Given(rng.IntN(3))}})[0]
	case "extend":
		err = d.Extend(t.Context(), list, time.Minute)[0]
	default:
		err = f.client.ZAddXX(t.Context(), f.mailbox().keys[1], redis.Z{Score: 1, Member: r.MessageID}).Err()
	}
	if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	h.note(client, called, a, err == nil)
}

// The model refuses what must not happen.
func TestModelOfAMailbox(t *testing.T) {
	for name, ops := range map[string][]act{
		"two holders":      {{"receive", "1", "a"}, {"receive", "1", "b"}},
		"a late ack":       {{"receive", "1", "a"}, {"end", "1", ""}, {"receive", "1", "b"}, {"ack", "1", "a"}},
		"back from nought": {{"receive", "1", "a"}, {"ack", "1", "a"}, {"receive", "1", "b"}},
	} {
		var list []porcupine.Operation
		for n, a := range ops {
			list = append(list, porcupine.Operation{Input: a, Output: true, Call: int64(2 * n), Return: int64(2*n + 1)})
		}
		if porcupine.CheckOperations(mailboxModel, list) {
			t.Errorf("%s: it is accepted", name)
		}
	}
}
