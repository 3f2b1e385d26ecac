package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
)

// touch says that something is to be committed.
func (d *Driver) touch() {
	select {
	case d.dirty <- struct{}{}:
	default:
	}
}

// commitLoop commits soon, and not too often. What fails is tried again.
func (d *Driver) commitLoop() {
	rest := time.NewTicker(d.c.CommitEvery)
	defer rest.Stop()
	for {
		select {
		case <-d.living.Done():
			return
		case <-d.dirty:
		}
		d.committing <- struct{}{}
		d.settle()
		failed := d.commitMarks(d.living, d.all(), d.markOf, d.throughMember)
		<-d.committing
		if failed {
			d.touch()
		}
		select {
		case <-d.living.Done():
			return
		case <-rest.C:
		}
	}
}

// settle forgets the holder of partitions of which nothing is in hand: if it
// vanishes now, it takes nothing along.
func (d *Driver) settle() {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.parts {
		if p.counted && p.moved && p.len() == 0 && (len(p.held) == 0 || p.due.After(now)) {
			p.counted = false
		}
	}
}

func (d *Driver) all() []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*partition, 0, len(d.parts))
	for _, p := range d.parts {
		list = append(list, p)
	}
	return list
}

// markOf is what is to be committed of a partition now.
func (d *Driver) markOf(p *partition) mark { return p.mark(int(d.parallel.Load())) }

// countIn commits for all partitions of which something is to be handed out whom to
// suspect if this holder vanishes. Where that fails nothing is handed out yet.
func (d *Driver) countIn(ctx context.Context, now time.Time, turn *partition) {
	select {
	case d.committing <- struct{}{}:
	case <-ctx.Done(): // another commit waits for the group
		return
	}
	defer func() { <-d.committing }()
	going := map[*partition]mark{}
	d.mu.Lock()
	for _, p := range d.parts {
		if !d.goes(p, turn) || now.Before(p.due) || p.counted && !(p.suspected() && p.next > p.kept.offset) {
			continue
		}
		going[p] = mark{p.next, p.leader, p.vanish(int(d.parallel.Load()))}
	}
	d.mu.Unlock()
	if len(going) == 0 {
		return
	}
	d.commitMarks(ctx, d.all(), func(p *partition) mark {
		if m, goes := going[p]; goes {
			return m
		}
		return d.markOf(p)
	}, d.throughMember)
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, m := range going {
		p.counted = p.counted || p.keptAny && p.kept == m
	}
}

// commitMarks commits what differs from what the group has, for partitions that are
// still ours. It must not be called twice at a time.
func (d *Driver) commitMarks(ctx context.Context, list []*partition, what func(*partition) mark, send sender) (failed bool) {
	marks := map[place]mark{}
	d.mu.Lock()
	for _, p := range list {
		m := what(p)
		if p.lost || !p.known || p.keptAny && m == p.kept {
			continue
		}
		marks[p.place] = m
	}
	d.mu.Unlock()
	if len(marks) == 0 {
		return false
	}
	answer, err := send(ctx, marks)
	refused := d.committed(list, marks, answer, err)
	if errors.Is(refused, kerr.UnknownMemberID) || errors.Is(refused, kerr.IllegalGeneration) {
		d.throwOut()
	}
	return refused != nil
}

// sender tells the group marks, and brings its answer.
type sender func(context.Context, map[place]mark) (*kmsg.OffsetCommitResponse, error)

// throughMember is the usual sender. The client sends nothing while the group gathers
// its members, and who ends does not wait for that: only once the marks are on their way
// the end of ctx does not matter.
func (d *Driver) throughMember(ctx context.Context, marks map[place]mark) (answer *kmsg.OffsetCommitResponse, err error) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	onItsWay := context.AfterFunc(ctx, cancel)
	defer onItsWay()
	sent := false
	sending = kgo.PreCommitFnContext(sending, func(r *kmsg.OffsetCommitRequest) error {
		if sent = onItsWay(); !sent {
			return errNotSent
		}
		for i := range r.Topics {
			for k := range r.Topics[i].Partitions {
				at := &r.Topics[i].Partitions[k]
				text := marks[place{r.Topics[i].Topic, at.Partition}].metadata()
				at.Metadata = &text
			}
		}
		return nil
	})
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for at, m := range marks {
		if offsets[at.topic] == nil {
			offsets[at.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[at.topic][at.part] = kgo.EpochOffset{Epoch: m.epoch, Offset: m.offset}
	}
	d.mu.Lock()
	group := d.group
	d.mu.Unlock()
	group.CommitOffsetsSync(sending, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, got *kmsg.OffsetCommitResponse, failed error) {
		answer, err = got, failed
	})
	if !sent && ctx.Err() != nil {
		err = errNotSent
	}
	return answer, err
}

// committed notes what the group has now, and returns why it does not have all.
func (d *Driver) committed(list []*partition, marks map[place]mark, answer *kmsg.OffsetCommitResponse, err error) error {
	errs := map[place]error{}
	if answer != nil {
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				errs[place{t.Topic, p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range list {
		m, asked := marks[p.place]
		refused, answered := errs[p.place]
		switch {
		case !asked:
		case err == nil && answered && refused == nil:
			p.kept, p.keptAny = m, true
		case err == nil && !answered:
			err = errUnanswered
		case err == nil:
			err = refused
		}
	}
	if err != nil && !regroups(err) && !errors.Is(err, errNotSent) {
		d.trouble = nixie.Errorf(nixie.CodeUnavailable, "commit: %w", err)
	}
	return err
}

var (
	errUnanswered = errors.New("the broker did not say whether it has the offsets")
	errNotSent    = errors.New("the group was gathering its members, and who had something to say ends")
)

// regroups reports whether an error only says that the group is another one by now:
// whoever has the partition then goes on from what is committed.
func regroups(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.RebalanceInProgress)
}
