package foreign

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Headers of a record that tell about its job.
const (
	headerSystem = "job-system"
	headerSet    = "job-set"    // the key where it lay
	headerScore  = "job-score"  // of its entry there
	headerType   = "job-type"   // class, function or name of the job
	headerDamage = "job-damage" // why it could not be read whole

	headerHeader      = "job-header" // of a task of asynq
	headerOpts        = "job-opts"   // of a job of BullMQ
	headerDescription = "job-description"
	headerLimit       = "job-rate-limit" // of a job of RQ
)

// job holds what a system keeps of a dead job. What it does not keep is zero.
type job struct {
	id, queue, kind string
	body            []byte
	enqueued        time.Time
	firstFailed     time.Time
	attempts        int
	death           nixie.Failure
	earlier         []nixie.Failure // with their times, the oldest first
	more            []nixie.Header  // other facts that an operator wants to see
	damage          string
	score           string
	entry           redis.Z // in its set
	stored          []byte  // what lies there, if it is more than the body
	opts            string  // of BullMQ

	// unpack inflates what its system compressed, again if asked again; nil: nothing. It is called
	// before record.
	unpack func(*job, *inflater)
}

// diedAt returns the time of death in milliseconds, −1 if it is not known.
func (j *job) diedAt() int64 {
	if j.death.FailedAt.IsZero() {
		return -1
	}
	return j.death.FailedAt.UnixMilli()
}

// maxFact is the most bytes of one fact in a header.
const maxFact = 4 << 10

// tell adds a fact, unless it is empty.
func (j *job) tell(name, value string) {
	if value != "" {
		j.more = append(j.more, nixie.Header{Name: name, Value: clipped(value, maxFact)})
	}
}

// record makes the record of a job. Its offset is the time of death in milliseconds, which orders
// the sets of most systems, and lets a job that dies again become another letter.
func (j *job) record(system string, set deadSet, at broker.Site) broker.Record {
	if nixie.CheckName("queue", j.queue) != nil {
		j.queue, j.damage = "", cmp.Or(j.damage, "its queue has no name that can be kept")
	}
	if nixie.CheckName("job", j.id) != nil {
		j.id, j.damage = unnamed([]byte(j.id)), cmp.Or(j.damage, "its ID is none that can be kept")
	}
	facts := []nixie.Header{{Name: headerSystem, Value: system}, {Name: headerSet, Value: set.key}}
	for _, f := range [...]nixie.Header{{Name: headerScore, Value: j.score}, {Name: headerType, Value: j.kind},
		{Name: headerDamage, Value: j.damage}} {
		if f.Value != "" {
			facts = append(facts, nixie.Header{Name: f.Name, Value: clipped(f.Value, maxFact)})
		}
	}
	died, hash := j.diedAt(), nixie.HashBody(j.body)
	l := nixie.Letter{
		Message: nixie.Message{
			Headers: append(facts, j.more...), Attempts: j.attempts,
			Origin: &nixie.Origin{Channel: j.queue, Partition: -1, Offset: died},
		},
		Cause: nixie.CauseExhausted, FirstFailedAt: j.firstFailed, History: append(j.earlier, j.death),
	}
	headers := slices.DeleteFunc(broker.LetterHeaders(&l), func(h broker.RecordHeader) bool {
		return h.Name == broker.HeaderFailureReason // it would be in our words, and no system tells it
	})
	return broker.Record{
		Channel: clipped(set.key, nixie.MaxName), Partition: -1, Offset: died, MessageID: j.id, Key: []byte(j.id), Value: j.body,
		Headers: headers, Damage: j.damage, Timestamp: j.enqueued, ID: j.recordID(system, died, at, hash),
		Server: at.Server, Database: at.Database, Prefix: at.Prefix, BodyHash: hash[:],
	}
}

// recordID derives an ID from system, queue, job and time of death, and from the site and the body
// if the server has a name: a UUID of version 7.
func (j *job) recordID(system string, died int64, at broker.Site, hash nixie.Hash) (id [16]byte) {
	name := fmt.Appendf(nil, "%q %q %q %d", system, j.queue, j.id, died)
	if at.Server != "" {
		name = fmt.Appendf(name, " %q %q %q %x", at.Server, at.Database, at.Prefix, hash)
	}
	sum := sha256.Sum256(name)
	copy(id[:], sum[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(died, 1)))
	copy(id[:6], ms[2:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// unnamed gives a job without an ID one that follows from its bytes.
func unnamed(stored []byte) string {
	sum := sha256.Sum256(stored)
	return fmt.Sprintf("sha256-%x", sum[:16])
}

// clipped makes a text from outside valid and at most n bytes long.
func clipped(text string, n int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}
