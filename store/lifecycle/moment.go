package lifecycle

import (
	"math"
	"time"
)

// Nanos is a moment as stores keep it: nanoseconds since 1970, 0 for the zero time. One that
// is farther away than these reach, the year 9999 for example, is the last or the first of
// them.
func Nanos(at time.Time) int64 {
	switch {
	case at.IsZero():
		return 0
	case at.Year() > 2261:
		return math.MaxInt64
	case at.Year() < 1678:
		return math.MinInt64
	}
	return at.UnixNano()
}

// Moment is the reverse of [Nanos], in UTC.
func Moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// Hour is the hour of a moment, since 1970, by which deaths are counted; also of one before.
func Hour(nanos int64) int64 {
	h := nanos / int64(time.Hour)
	if nanos%int64(time.Hour) < 0 {
		h--
	}
	return h
}
