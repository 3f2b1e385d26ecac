package redis

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Reader takes records out of a mailbox, for an office that adopts them. It leases what it returns
// for [ReaderLease]; a record that is marked as done is removed, and Close gives the others back.
// [Read] makes one.
type Reader struct {
	d    *Driver
	left int64
}

var _ broker.Reader = (*Reader)(nil)

// ReaderLease limits how long a [Reader] keeps a record. One that is done later may be read again.
const ReaderLease = 10 * time.Minute

// closeLimit bounds the call that gives records back.
const closeLimit = callLimit

// Read opens a reader of the mailbox of an address, which has to be there. The reader ends after as
// many records as are visible now.
func Read(ctx context.Context, at Address) (*Reader, error) {
	d, err := Open(ctx, Config{Address: at, MustExist: true})
	if err != nil {
		return nil, err
	}
	s, err := d.mailbox.stats(ctx)
	if err != nil {
		d.Publisher.Close() // it has leased nothing
		return nil, err
	}
	return &Reader{d, s.Visible}, nil
}

// Looker reads the visible records of a mailbox and leases none. [Look] makes one.
type Looker struct {
	p       *Publisher
	mailbox string
	at      int
	end     int64
}

var _ broker.Reader = (*Looker)(nil)

// Look opens a reader that changes nothing in the mailbox of an address, which has to be there. It
// ends after as many records as are visible now. A record that another receives meanwhile may hide
// one from it.
func Look(ctx context.Context, at Address) (*Looker, error) {
	p, err := Connect(at)
	if err != nil {
		return nil, err
	}
	s, err := p.Look(ctx, at.Mailbox)
	if err != nil {
		p.Close()
		return nil, err
	}
	return &Looker{p, at.Mailbox, 0, s.Visible}, nil
}

// lookAtOnce limits the records of one look: each may have [MaxRecord].
const lookAtOnce = 50

// Next returns the next records. Their MessageID is that of [Reader].
func (l *Looker) Next(ctx context.Context, most int) ([]broker.Record, error) {
	most = int(min(int64(most), l.Left(), lookAtOnce))
	if most <= 0 {
		return nil, nil
	}
	records, err := l.p.Browse(ctx, l.mailbox, l.at, most)
	if l.at += most; err == nil && len(records) == 0 {
		l.at = int(l.end)
	}
	for n := range records {
		records[n].MessageID = nixie.ID(records[n].ID).String()
	}
	return records, err
}

// Done implements [broker.Reader]: there is nothing to remember.
func (l *Looker) Done(context.Context, ...[]*broker.Record) error { return nil }

// Left returns how many records are still to come.
func (l *Looker) Left() int64 { return max(l.end-int64(l.at), 0) }

// Close ends the connection.
func (l *Looker) Close() { l.p.Close() }

// taken is the receipt of a record of a reader.
type taken struct {
	id      string
	receipt any
}

// Next leases records. Their MessageID differs from that of all records of other mailboxes, and of
// mailboxes of this name that were deleted.
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	if r.left <= 0 {
		return nil, nil
	}
	records, err := r.d.Receive(ctx, broker.Want{Max: int(min(int64(most), r.left)), Lease: ReaderLease})
	if r.left -= int64(len(records)); len(records) == 0 {
		r.left = 0
	}
	for n := range records {
		one := &records[n]
		one.Receipt, one.MessageID = taken{one.MessageID, one.Receipt}, nixie.ID(one.ID).String()
	}
	return records, err
}

// Done removes records. One whose lease has ended comes again, and that is no error.
func (r *Reader) Done(ctx context.Context, calls ...[]*broker.Record) error {
	var done []*broker.Record
	for _, call := range calls {
		for _, one := range call {
			back := one.Receipt.(taken)
			done = append(done, &broker.Record{MessageID: back.id, Receipt: back.receipt})
		}
	}
	var failed error
	for _, err := range r.d.Ack(ctx, done) {
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost && failed == nil {
			failed = err
		}
	}
	return failed
}

// Left returns how many records are still to come.
func (r *Reader) Left() int64 { return r.left }

// Close gives back what is not done.
func (r *Reader) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = r.d.Close(ctx) // the leases end by themselves
}
