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
		case <-d.quit:
			return
		case <-d.dirty:
		}
		d.committing.Lock()
		d.settle()
		failed := d.commitMarks(context.Background(), d.all(), d.markOf)
		d.committing.Unlock()
		if failed {
			d.touch()
		}
		select {
		case <-d.quit:
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
	d.committing.Lock()
	defer d.committing.Unlock()
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
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, m := range going {
		p.counted = p.counted || p.keptAny && p.kept == m
	}
}

// commitMarks commits what differs from what the group has, for partitions that are
// still ours. It must not be called twice at a time.
func (d *Driver) commitMarks(ctx context.Context, list []*partition, what func(*partition) mark) (failed bool) {
	marks := map[place]mark{}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	d.mu.Lock()
	for _, p := range list {
		m := what(p)
		if p.lost || !p.known || p.keptAny && m == p.kept {
			continue
		}
		marks[p.place] = m
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.part] = kgo.EpochOffset{Epoch: m.epoch, Offset: m.offset}
	}
	group := d.group
	d.mu.Unlock()
	if len(marks) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	ctx = kgo.PreCommitFnContext(ctx, func(r *kmsg.OffsetCommitRequest) error {
		for i := range r.Topics {
			for k := range r.Topics[i].Partitions {
				at := &r.Topics[i].Partitions[k]
				text := marks[place{r.Topics[i].Topic, at.Partition}].metadata()
				at.Metadata = &text
			}
		}
		return nil
	})
	var refused error
	group.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		refused = d.committed(list, marks, answer, err)
	})
	if errors.Is(refused, kerr.UnknownMemberID) || errors.Is(refused, kerr.IllegalGeneration) {
		d.throwOut()
	}
	return refused != nil
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
	if err != nil && !regroups(err) {
		d.trouble = nixie.Errorf(nixie.CodeUnavailable, "commit: %w", err)
	}
	return err
}

var errUnanswered = errors.New("the broker did not say whether it has the offsets")

// regroups reports whether an error only says that the group is another one by now:
// whoever has the partition then goes on from what is committed.
func regroups(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.RebalanceInProgress)
}
