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

// requestCommit wakes the commit loop.
func (d *Driver) requestCommit() {
	select {
	case d.dirty <- struct{}{}:
	default:
	}
}

// commitLoop commits soon after a request, and not too often. It repeats commits that failed.
func (d *Driver) commitLoop() {
	rest := time.NewTicker(d.c.CommitEvery)
	defer rest.Stop()
	for {
		select {
		case <-d.loopCtx.Done():
			return
		case <-d.dirty:
		}
		d.committing <- struct{}{}
		d.forgetIdleHolders()
		failed := d.commitPoints(d.loopCtx, d.allPartitions(), d.commitPointOf, d.commitByClient)
		<-d.committing
		if failed {
			d.requestCommit()
		}
		select {
		case <-d.loopCtx.Done():
			return
		case <-rest.C:
		}
	}
}

// forgetIdleHolders stops counting this member as a holder of partitions of which it has nothing in
// hand: if it vanishes now, no record can be to blame.
func (d *Driver) forgetIdleHolders() {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.partitions {
		if p.holderCommitted && p.progressed && p.len() == 0 && (len(p.held) == 0 || p.dueAt.After(now)) {
			p.holderCommitted = false
		}
	}
}

func (d *Driver) allPartitions() []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*partition, 0, len(d.partitions))
	for _, p := range d.partitions {
		list = append(list, p)
	}
	return list
}

// commitPointOf returns what to commit of a partition now. The caller holds mu.
func (d *Driver) commitPointOf(p *partition) commitPoint {
	return p.commitPoint(int(d.parallel.Load()), d.told)
}

// commitHolder commits, before any record of a partition is handed out, which records to suspect if
// this member vanishes. If that fails, nothing of the partition is handed out yet.
func (d *Driver) commitHolder(ctx context.Context, now time.Time, suspect *partition) {
	select {
	case d.committing <- struct{}{}:
	case <-ctx.Done(): // another commit waits for the group
		return
	}
	defer func() { <-d.committing }()
	going := map[*partition]commitPoint{}
	d.mu.Lock()
	for _, p := range d.partitions {
		if !d.mayHandOut(p, suspect) || now.Before(p.dueAt) || p.holderCommitted && !(p.suspected() && p.next > p.committed.offset) {
			continue
		}
		going[p] = commitPoint{p.next, p.leaderEpoch, p.afterHolder(int(d.parallel.Load()), d.told)}
	}
	d.mu.Unlock()
	if len(going) == 0 {
		return
	}
	d.commitPoints(ctx, d.allPartitions(), func(p *partition) commitPoint {
		if m, goes := going[p]; goes {
			return m
		}
		return d.commitPointOf(p)
	}, d.commitByClient)
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, m := range going {
		p.holderCommitted = p.holderCommitted || p.hasCommitted && p.committed == m
	}
}

// commitPoints commits those points that the group does not have yet, of partitions that are still
// ours. The caller holds committing.
func (d *Driver) commitPoints(ctx context.Context, list []*partition, what func(*partition) commitPoint, send commitFunc) (failed bool) {
	points := map[topicPartition]commitPoint{}
	d.mu.Lock()
	for _, p := range list {
		m := what(p)
		if p.lost || !p.known || p.hasCommitted && m == p.committed {
			continue
		}
		points[p.topicPartition] = m
	}
	d.mu.Unlock()
	if len(points) == 0 {
		return false
	}
	answer, err := send(ctx, points)
	refused := d.applyCommit(list, points, answer, err)
	if errors.Is(refused, kerr.UnknownMemberID) || errors.Is(refused, kerr.IllegalGeneration) {
		d.throwOut()
	}
	return refused != nil
}

// commitFunc sends points to the group and returns its answer.
type commitFunc func(context.Context, map[topicPartition]commitPoint) (*kmsg.OffsetCommitResponse, error)

// commitByClient is the usual commitFunc. While the group rebalances the client does not send, and
// the end of ctx ends that wait. Once the request is under way, the end of ctx no longer matters.
func (d *Driver) commitByClient(ctx context.Context, points map[topicPartition]commitPoint) (answer *kmsg.OffsetCommitResponse, err error) {
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
				text := points[topicPartition{r.Topics[i].Topic, at.Partition}].metadata()
				at.Metadata = &text
			}
		}
		return nil
	})
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for at, m := range points {
		if offsets[at.topic] == nil {
			offsets[at.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[at.topic][at.partition] = kgo.EpochOffset{Epoch: m.epoch, Offset: m.offset}
	}
	d.mu.Lock()
	group := d.group
	d.mu.Unlock()
	group.CommitOffsetsSync(sending, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, got *kmsg.OffsetCommitResponse,
		failed error) {
		answer, err = got, failed
	})
	if !sent && ctx.Err() != nil {
		err = errNotSent
	}
	return answer, err
}

// applyCommit remembers what the group has now, and returns why it does not have all.
func (d *Driver) applyCommit(list []*partition, points map[topicPartition]commitPoint, answer *kmsg.OffsetCommitResponse, err error) error {
	errs := map[topicPartition]error{}
	if answer != nil {
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				errs[topicPartition{t.Topic, p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range list {
		m, asked := points[p.topicPartition]
		refused, answered := errs[p.topicPartition]
		switch {
		case !asked:
		case err == nil && answered && refused == nil:
			p.committed, p.hasCommitted = m, true
		case err == nil && !answered:
			err = errUnanswered
		case err == nil:
			err = refused
		}
	}
	if err != nil && !groupChanged(err) && !errors.Is(err, errNotSent) {
		d.commitErr = nixie.Errorf(nixie.CodeUnavailable, "commit: %w", err)
	}
	return err
}

var (
	errUnanswered = errors.New("the broker did not answer for all offsets")
	errNotSent    = errors.New("the consumer group was rebalancing when the call ended, so nothing was committed")
)

// groupChanged reports whether an error only says that the group has rebalanced. The new holder of
// a partition then goes on from the last commit.
func groupChanged(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.RebalanceInProgress)
}
