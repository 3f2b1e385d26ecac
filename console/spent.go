package console

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// meter adds up processor time.
type meter struct{ atomic.Int64 }

func (m *meter) spent() time.Duration { return time.Duration(m.Load()) }

// meterKey is the key of a meter in a context.
type meterKey struct{}

// metered calls do and adds the processor time that it takes to the meter of a context, if there is
// one. Time of a clock would say how busy others are, who hold the store or the processors.
func metered(ctx context.Context, do func() error) error {
	m, _ := ctx.Value(meterKey{}).(*meter)
	if m == nil {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	defer func() { m.Add(int64(threadTime() - began)) }()
	return do()
}
