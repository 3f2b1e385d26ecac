package browser

// Keys that are no characters, for [Tab.Press] and [Tab.Submit].
const (
	KeyEnter = "\r"
	KeyTab   = "\t"
	KeyBack  = "\b"     // takes a character away
	KeyDown  = "\u2193" // the arrow
)

// keys are those that a page knows by their names.
var keys = map[rune]struct {
	name, text string
	code       int
}{
	'\r': {"Enter", "\r", 13},
	'\t': {"Tab", "", 9},
	'\b': {"Backspace", "", 8},
	'↓':  {"ArrowDown", "", 40},
}

// press has the two calls that press a key and let it go.
func press(r rune) (down, up object) {
	key, known := keys[r]
	if !known {
		return object{"type": "keyDown", "key": string(r), "text": string(r)}, object{"type": "keyUp", "key": string(r)}
	}
	down = object{"type": "keyDown", "key": key.name, "code": key.name, "windowsVirtualKeyCode": key.code, "text": key.text}
	return down, object{"type": "keyUp", "key": key.name, "code": key.name, "windowsVirtualKeyCode": key.code}
}
