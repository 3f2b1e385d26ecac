package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The file of a guard has a header and slots of fixed size. One small write at a known offset adds
// or removes a group. It is text, for people. It is not synced: a power loss ends all groups.
const (
	headerSize = 256
	slotSize   = 32
	maxSlots   = 1 << 16 // groups of one owner at a time
	groupsMark = "nixie-groups-1"
)

// groupList lists the process groups that an owner has started.
type groupList struct {
	mark    string // in the environment of all its processes
	session int    // of the owner
	system  string // the boot and process ID namespace in which the numbers are valid
	slots   []slot
}

// slot holds one group; group number 0 marks a free slot.
type slot struct {
	group int
	start uint64 // of the leader, in ticks since boot; 0 means unknown
}

func (g groupList) header() []byte {
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

// parseGroups reads the file of a guard. A damaged file, which only a power loss can make, lists no
// groups.
func parseGroups(data []byte) groupList {
	if len(data) < headerSize {
		return groupList{}
	}
	head := strings.Fields(string(data[:headerSize]))
	if len(head) != 4 || head[0] != groupsMark {
		return groupList{}
	}
	session, err := strconv.Atoi(head[2])
	if err != nil {
		return groupList{}
	}
	g := groupList{mark: head[1], session: session, system: head[3]}
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
	if err != nil || group <= 1 { // 0 marks a free slot; -1 and 1 would mean all processes
		return slot{}, false
	}
	start, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return slot{int(group), start}, err == nil
}

// groupsFile returns the file name of an owner. It writes unsafe characters and capitals in hex. So
// no owner is a path, and no two owners share a name, also where case makes no difference. It
// hashes a long name.
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
