package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The file of a guard is a header and slots of fixed size, so that one small
// write at a known place adds or removes a group. It is text for the sake of
// whoever has to look at it. It is not synced: after a power loss there is
// nobody left to end.
const (
	headerSize = 256
	slotSize   = 32
	maxSlots   = 1 << 16 // groups of one owner at a time
	groupsMark = "nixie-groups-1"
)

// groups are the process groups that an owner has started.
type groups struct {
	mark    string // that the environment of all its processes carries
	session int    // of the owner
	system  string // boot and process number space in which the numbers hold
	slots   []slot
}

// slot is one group; a group number of 0 is a free slot.
type slot struct {
	group int
	start uint64 // of the leader, in ticks since boot; 0 is unknown
}

func (g groups) header() []byte {
	head := fmt.Sprintf("%s %s %d %s", groupsMark, g.mark, g.session, g.system)
	return []byte(fmt.Sprintf("%-*s\n", headerSize-1, head))
}

func (s slot) append(to []byte) []byte {
	from := len(to)
	to = strconv.AppendInt(to, int64(s.group), 10)
	to = append(to, ' ')
	to = strconv.AppendUint(to, s.start, 10)
	for len(to) < from+slotSize-1 {
		to = append(to, ' ')
	}
	return append(to, '\n')
}

// parseGroups reads the file of a guard. Damage, which only a power loss can
// make, lists nothing: what cannot be proved to be a group is left alone.
func parseGroups(data []byte) groups {
	if len(data) < headerSize {
		return groups{}
	}
	head := strings.Fields(string(data[:headerSize]))
	if len(head) != 4 || head[0] != groupsMark {
		return groups{}
	}
	session, err := strconv.Atoi(head[2])
	if err != nil {
		return groups{}
	}
	g := groups{mark: head[1], session: session, system: head[3]}
	for data = data[headerSize:]; len(data) >= slotSize && len(g.slots) < maxSlots; data = data[slotSize:] {
		if s, ok := parseSlot(data[:slotSize]); ok {
			g.slots = append(g.slots, s)
		}
	}
	return g
}

func parseSlot(line []byte) (slot, bool) {
	fields := bytes.Fields(line)
	if len(fields) != 2 {
		return slot{}, false
	}
	group, err := strconv.ParseInt(string(fields[0]), 10, 32)
	if err != nil || group <= 1 { // 0 is free; -1 and 1 would be everybody
		return slot{}, false
	}
	start, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return slot{int(group), start}, err == nil
}

// groupsFile is the file name of an owner: its safe characters, others in hex,
// so that no owner is a path and no two owners share a name, also where case
// makes no difference. A long one is hashed.
func groupsFile(owner string) string {
	var name strings.Builder
	for _, b := range []byte(owner) {
		if 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '-' || b == '_' {
			name.WriteByte(b)
		} else {
			fmt.Fprintf(&name, "%%%02x", b)
		}
	}
	if name.Len() > 200 {
		sum := sha256.Sum256([]byte(owner))
		return "%%" + hex.EncodeToString(sum[:]) + ".groups"
	}
	return name.String() + ".groups"
}
