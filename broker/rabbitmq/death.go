package rabbitmq

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/task"
)

// Headers in which a record tells what the server's x-death says. The format rabbitmq of package
// broker reads them.
const (
	deathPrefix  = "x-death"
	deathOrigin  = "x-death-origin" // queue where it died first
	deathCause   = "x-death-cause"  // a [nixie.Reason]
	deathWhy     = "x-death-why"
	deathAt      = "x-death-at"       // ms since 1970
	deathFirstAt = "x-death-first-at" // ms since 1970
	deathEntries = "x-death-entries"  // all of x-death, in JSON

	// Of a task of another program.
	deathTask      = "x-death-task"
	deathAttempts  = "x-death-attempts"
	deathException = "x-death-exception"
	deathStack     = "x-death-stack"
)

// death is an entry of x-death: how often a message left a queue for one reason. The server puts
// the newest first.
type death struct {
	Queue      string    `json:"queue"`
	Reason     string    `json:"reason"`
	Count      int64     `json:"count"`
	First      time.Time `json:"first"` // death of this queue and reason, in whole seconds
	Exchange   string    `json:"exchange,omitempty"`
	Routing    []string  `json:"routing_keys,omitempty"`
	Expiration string    `json:"original_expiration,omitempty"`
}

// Reasons that servers give.
const (
	rejected      = "rejected"
	deliveryLimit = "delivery_limit"
	expired       = "expired"
	maxLength     = "maxlen"
)

// deathsOf reads x-death. Entries that are none are left out.
func deathsOf(headers amqp.Table) (all []death) {
	list, _ := headers["x-death"].([]any)
	for _, one := range list[:min(len(list), maxDeaths)] {
		entry, ok := one.(amqp.Table)
		if !ok {
			continue
		}
		var d death
		d.Queue, _ = entry["queue"].(string)
		d.Reason, _ = entry["reason"].(string)
		d.Exchange, _ = entry["exchange"].(string)
		d.Expiration, _ = entry["original-expiration"].(string)
		d.First, _ = entry["time"].(time.Time)
		d.Count = wholeNumber(entry["count"])
		keys, _ := entry["routing-keys"].([]any)
		for _, key := range keys {
			if text, ok := key.(string); ok {
				d.Routing = append(d.Routing, text)
			}
		}
		if d.Queue != "" || d.Reason != "" {
			all = append(all, d)
		}
	}
	return all
}

// maxDeaths limits the entries that are read.
const maxDeaths = 100

// wholeNumber reads a number of any type of AMQP; 0 if it is none, or negative.
func wholeNumber(value any) int64 {
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// lastDeath returns the death that a message died of: the newest that a consumer had a part in, or
// else the newest. In a cycle of retries the newest is the end of a wait, and not the failure.
func lastDeath(all []death) (death, bool) {
	for _, d := range all {
		if d.Reason == rejected || d.Reason == deliveryLimit {
			return d, true
		}
	}
	if len(all) == 0 {
		return death{}, false
	}
	return all[0], true
}

// taskOf reads what a message of Celery or Dramatiq tells of its task.
func taskOf(d *amqp.Delivery) task.Task {
	if t, is := task.ReadCelery(d.Headers); is {
		return t
	}
	t, _ := task.ReadDramatiq(d.Body)
	return t
}

// tellDeath adds what the server says of the deaths of a message, and what its sender does.
func tellDeath(from *amqp.Delivery, into *broker.Record) {
	headers := from.Headers
	all := deathsOf(headers)
	d, died := lastDeath(all)
	if !died {
		return
	}
	tell := func(name, value string) {
		if value != "" {
			into.Headers = append(into.Headers, broker.RecordHeader{Name: name, Value: []byte(value)})
		}
	}
	origin, _ := headers["x-first-death-queue"].(string)
	if origin == "" {
		origin = all[len(all)-1].Queue
	}
	first := d.First
	for _, one := range all {
		if one.First.Before(first) && one.Reason == d.Reason {
			first = one.First
		}
	}
	tell(deathOrigin, origin)
	t := taskOf(from)
	if t.Kind != "" {
		tell(deathTask, t.Kind)
		tell(deathAttempts, strconv.Itoa(t.Attempts))
	}
	if d.Reason == rejected && t.Stack != "" { // the task's own failure is the cause
		tell(deathException, t.Type)
		tell(deathWhy, cmp.Or(t.Text, t.Type))
		tell(deathStack, t.Stack)
	} else {
		tell(deathCause, string(d.cause()))
		tell(deathWhy, d.why())
	}
	tell(deathAt, milliseconds(d.First))
	tell(deathFirstAt, milliseconds(first))
	if text, err := json.Marshal(all); err == nil {
		tell(deathEntries, string(text))
	}
	expires := false
	for _, h := range into.Headers {
		expires = expires || h.Name == headerExpiry
	}
	for _, one := range all {
		if !expires && one.Expiration != "" { // the server took it away with this death
			tell(headerExpiry, one.Expiration)
			return
		}
	}
}

func milliseconds(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// cause returns our reason for what the server says.
func (d *death) cause() nixie.Reason {
	switch d.Reason {
	case rejected:
		return nixie.ReasonHandler
	case expired:
		return nixie.ReasonMaxAge
	case maxLength:
		return nixie.ReasonResource
	}
	return nixie.ReasonUnknown // of delivery_limit too: returns and crashes count alike
}

// why says how a message died, without what differs from one to the next.
func (d *death) why() string {
	switch d.Reason {
	case rejected:
		return "rejected by a consumer of " + d.Queue
	case deliveryLimit:
		return "returned to " + d.Queue + " more often than its delivery limit"
	case expired:
		return "expired in " + d.Queue
	case maxLength:
		return "pushed out of " + d.Queue + " by its maximum length"
	}
	return d.Reason + " in " + d.Queue
}
