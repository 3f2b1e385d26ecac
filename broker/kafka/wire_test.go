package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire lies between a client and its brokers, which may be real ones. It calls asked for each
// request before the broker has it, and answered for each answer before the client has it. Until
// such a call returns, nothing else passes on that connection. The call returns false to break the
// connection. A nil function lets all pass.
type wire struct {
	asked    func(*exchange) bool
	answered func(*exchange) bool
}

// exchange is a request, and later its answer.
type exchange struct {
	kmsg.Request
	body   []byte
	answer []byte // empty until it comes
}

// through makes a client connect through the wire.
func (w *wire) through() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		far, err := (&net.Dialer{}).DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		client, near := net.Pipe()
		l := &wireConn{wire: w, near: near, far: far, open: map[uint32]*exchange{}}
		go l.carry(far, near, l.request)
		go l.carry(near, far, l.reply)
		return client, nil
	})
}

// wireConn is one connection.
type wireConn struct {
	*wire
	near, far net.Conn

	mu   sync.Mutex
	open map[uint32]*exchange // by the number of the request
}

// carry copies frames from one end to the other until one of them ends.
func (l *wireConn) carry(to io.Writer, from io.Reader, look func(frame []byte) (bool, error)) {
	defer l.near.Close() //nolint:errcheck // the other end notices it
	defer l.far.Close()  //nolint:errcheck // the other end notices it
	for {
		var size [4]byte
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
		copy(frame, size[:])
		if _, err := io.ReadFull(from, frame[4:]); err != nil {
			return
		}
		passes, err := look(frame[4:])
		if err != nil {
			panic(err)
		}
		if !passes {
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

func (l *wireConn) request(frame []byte) (passes bool, err error) {
	r := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(frame)))
	if r == nil {
		return false, fmt.Errorf("request %x is of no kind", frame[:4])
	}
	r.SetVersion(int16(binary.BigEndian.Uint16(frame[2:])))
	number, rest := binary.BigEndian.Uint32(frame[4:]), frame[8:]
	rest = rest[2+max(int16(binary.BigEndian.Uint16(rest)), 0):] // the name of the client
	if r.IsFlexible() {
		if rest, err = untagged(rest); err != nil {
			return false, err
		}
	}
	e := &exchange{Request: r, body: rest}
	l.mu.Lock()
	l.open[number] = e
	l.mu.Unlock()
	return l.asked == nil || l.asked(e), nil
}

func (l *wireConn) reply(frame []byte) (passes bool, err error) {
	number, rest := binary.BigEndian.Uint32(frame), frame[4:]
	l.mu.Lock()
	e := l.open[number]
	delete(l.open, number)
	l.mu.Unlock()
	if e == nil {
		return false, fmt.Errorf("answer %d without a request", number)
	}
	if e.Key() != int16(kmsg.ApiVersions) && e.ResponseKind().IsFlexible() {
		if rest, err = untagged(rest); err != nil {
			return false, err
		}
	}
	e.answer = rest
	return l.answered == nil || l.answered(e), nil
}

var errTags = errors.New("a header has tags, which this test does not read")

func untagged(rest []byte) ([]byte, error) {
	if rest[0] != 0 {
		return nil, errTags
	}
	return rest[1:], nil
}

// commit returns a request to commit and its answer, as far as the exchange is one and has one.
func (e *exchange) commit() (*kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse) {
	asked, is := e.Request.(*kmsg.OffsetCommitRequest)
	if !is {
		return nil, nil
	}
	if err := asked.ReadFrom(e.body); err != nil {
		panic(err)
	}
	if len(e.answer) == 0 {
		return asked, nil
	}
	answer := asked.ResponseKind().(*kmsg.OffsetCommitResponse)
	if err := answer.ReadFrom(e.answer); err != nil {
		panic(err)
	}
	return asked, answer
}
