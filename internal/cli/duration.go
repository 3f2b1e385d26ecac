package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie/filter"
)

// durationFlag is a flag with a positive duration; days and weeks are allowed.
type durationFlag time.Duration

func (s *durationFlag) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *durationFlag) Type() string { return "duration" }

// Set reads a duration.
func (s *durationFlag) Set(text string) error {
	d, err := filter.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("give a duration longer than nothing")
	}
	*s = durationFlag(d)
	return err
}

// rateFlag is a flag with a number of events in an interval.
type rateFlag struct {
	n     *int64
	every time.Duration
	text  string
}

func (p *rateFlag) String() string { return p.text }
func (p *rateFlag) Type() string   { return "N/duration" }

// Set reads 10/5m, or 10/h for 10/1h.
func (p *rateFlag) Set(text string) error {
	number, every, _ := strings.Cut(text, "/")
	if every != "" && strings.Contains("smhdw", every[:1]) {
		every = "1" + every
	}
	n, err := strconv.ParseInt(number, 10, 64)
	d, wrong := filter.ParseDuration(every)
	if err != nil || wrong != nil || n < 0 || d == 0 {
		return errors.New("give a number in a time, such as 10/5m or 100/h")
	}
	p.n, p.every, p.text = &n, d, text
	return nil
}
