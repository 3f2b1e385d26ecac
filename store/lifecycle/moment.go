package lifecycle

import (
	"math"
	"time"
)

// Nanos returns a moment as stores keep it: nanoseconds since 1970, 0 for the zero time. A moment
// out of their range, for example in the year 9999, becomes the last or the first in range.
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

// Moment reverses [Nanos], in UTC.
func Moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// Hour returns the hours from 1970 to a moment, rounded down also before 1970. Deaths are counted
// by it.
func Hour(nanos int64) int64 {
	h := nanos / int64(time.Hour)
	if nanos%int64(time.Hour) < 0 {
		h--
	}
	return h
}
