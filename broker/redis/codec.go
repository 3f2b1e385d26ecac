package redis

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// wireFormat begins a record. After it come key and value, and name and value of each header: the
// number of bytes, a colon, and the bytes. Nil is "-:".
const wireFormat = '1'

// encode writes a record as it lies in the mailbox.
func encode(p *broker.Publication) []byte {
	size := 1 + 2*fieldRoom + len(p.Key) + len(p.Value)
	for _, h := range p.Headers {
		size += 2*fieldRoom + len(h.Name) + len(h.Value)
	}
	out := append(make([]byte, 0, size), wireFormat)
	out = appendField(appendField(out, p.Key), p.Value)
	for _, h := range p.Headers {
		out = strconv.AppendInt(out, int64(len(h.Name)), 10)
		out = append(append(out, ':'), h.Name...)
		out = appendField(out, h.Value)
	}
	return out
}

// fieldRoom is enough for the size of a field and its colon.
const fieldRoom = 8

func appendField(out, field []byte) []byte {
	if field == nil {
		return append(out, "-:"...)
	}
	out = strconv.AppendInt(out, int64(len(field)), 10)
	return append(append(out, ':'), field...)
}

// decode reads what lies in a mailbox: the time of sending, and what encode wrote.
func decode(stored string, into *broker.Record) error {
	ms, rest, ok := strings.Cut(stored, ":")
	at, err := strconv.ParseUint(ms, 10, 43) // until 2248
	if !ok || err != nil {
		return damaged("it does not begin with a time in milliseconds")
	}
	into.Timestamp = time.UnixMilli(int64(at))
	if rest == "" || rest[0] != wireFormat {
		return damaged("its format is not " + string(wireFormat))
	}
	var fields [][]byte
	for rest = rest[1:]; rest != ""; {
		var field []byte
		if field, rest, ok = cutField(rest); !ok {
			return damaged("a field is not a number of bytes, a colon and that many bytes")
		}
		fields = append(fields, field)
	}
	if len(fields) < 2 || len(fields)%2 != 0 {
		return damaged("it has " + strconv.Itoa(len(fields)) + " fields, and not key, value, and two for each header")
	}
	into.Key, into.Value = fields[0], fields[1]
	for n := 2; n < len(fields); n += 2 {
		into.Headers = append(into.Headers, broker.RecordHeader{Name: string(fields[n]), Value: fields[n+1]})
	}
	return nil
}

func damaged(why string) error {
	return nixie.Errorf(nixie.CodeInvalid, "record is not in the form of a mailbox: %s", why)
}

// cutField reads one field from the front of text.
func cutField(text string) (field []byte, rest string, ok bool) {
	size, rest, ok := strings.Cut(text, ":")
	if !ok || size == "-" {
		return nil, rest, ok
	}
	n, err := strconv.ParseUint(size, 10, 31)
	if err != nil || int(n) > len(rest) {
		return nil, "", false
	}
	return []byte(rest[:n]), rest[n:], true
}

// HeaderDamage is added to a record that another program wrote in a wrong form, and tells why. The
// value of the record is then all that lies in the mailbox.
const HeaderDamage = "x-nixie-damage"

// record makes a record of what the script tells of it.
func (m *mailbox) record(id, stored, counts string, into *broker.Record) {
	*into = broker.Record{Channel: m.name, Offset: -1, MessageID: id}
	if err := decode(stored, into); err != nil {
		into.Key, into.Value = nil, []byte(stored)
		into.Damage, into.Headers = err.Error(), []broker.RecordHeader{{Name: HeaderDamage, Value: []byte(err.Error())}}
	}
	into.ID = m.position(id, into.Timestamp)
	if counts == "" {
		return
	}
	deliveries, rest, _ := strings.Cut(counts, " ")
	crashes, rest, _ := strings.Cut(rest, " ")
	releases, rest, _ := strings.Cut(rest, " ")
	epoch, patience, _ := strings.Cut(rest, " ")
	into.PriorDeliveries, into.Crashes, into.Releases = number(deliveries), number(crashes), number(releases)
	into.Epoch = int64(number(epoch) & epochMask)
	into.Patience, _ = lease.ReadPatience(patience)
	into.Alone = lease.AloneTwice(1, into.Crashes-1) // the source runs suspects one at a time
}

const epochMask = 1<<23 - 1

// number reads a count, which the script wrote. Damaged ones are 0.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// position names a record of a mailbox for all times: by when it was sent, its ID, and the mailbox
// as it was made then. The form is that of a UUID of version 7.
func (m *mailbox) position(id string, sent time.Time) (out [16]byte) {
	const idBits = 40
	n, err := strconv.ParseUint(id, 10, idBits)
	if err != nil { // another program wrote it
		sum := sha256.Sum256([]byte(id))
		n = binary.BigEndian.Uint64(sum[:]) >> (64 - idBits)
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(sent.UnixMilli()))
	copy(out[:6], ms[2:])
	binary.BigEndian.PutUint16(out[6:], uint16(m.salt>>48)&0x0fff|0x7000)
	binary.BigEndian.PutUint64(out[8:], (n<<22|m.salt&(1<<22-1))&(1<<62-1)|1<<63)
	return out
}

// saltOf makes the part of a position that tells mailboxes from each other, also those of one name
// that were made one after the other.
func saltOf(name, born string) uint64 {
	sum := sha256.Sum256([]byte(name + "\x00" + born))
	return binary.BigEndian.Uint64(sum[:])
}
