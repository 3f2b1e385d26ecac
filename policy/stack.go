package policy

import "strings"

// PanicStack removes from a Go stack, in the form of debug.Stack, the frames that caught a panic
// and the frames of the runtime. Where names the function on top of the rest, which is the user's,
// with file and line. A stack without a panic stays whole.
func PanicStack(stack string) (rest, where string) {
	lines := strings.SplitAfter(stack, "\n")
	top := -1
	for i, line := range lines {
		switch name := frame(line); {
		case name == "panic":
			top = 0
		case top == 0 && name != "" && !ofRuntime(name):
			top = i
		}
	}
	if top <= 0 {
		return stack, ""
	}
	where = frame(lines[top])
	if file, ok := strings.CutPrefix(lineAt(lines, top+1), "\t"); ok {
		file, _, _ = strings.Cut(strings.TrimRight(file, "\r\n"), " +0x")
		where += " at " + file
	}
	if strings.HasPrefix(lines[0], "goroutine ") {
		rest = lines[0]
	}
	return rest + strings.Join(lines[top:], ""), where
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// isGo reports whether a stack is in the form of debug.Stack: a line of a file after a function.
func isGo(stack string) bool {
	return strings.HasPrefix(stack, "goroutine ") || strings.Contains(stack, ".go:")
}

// frames returns the names of the functions at the top of a Go stack, in the form of debug.Stack.
// It leaves out the functions above a panic: they caught it.
func frames(stack string) []string {
	var names []string
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "created by ") {
			break
		}
		name := frame(line)
		switch {
		case name == "panic":
			names = names[:0]
		case name == "" || ofRuntime(name):
		default:
			names = append(names, name)
		}
	}
	return names[:min(len(names), signatureFrames)]
}

func ofRuntime(name string) bool {
	return strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "runtime/")
}

// frame returns the function that a line of a stack names, or "".
func frame(line string) string {
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "goroutine ") {
		return ""
	}
	line = strings.TrimRight(line, "\r\n")
	end := strings.LastIndexByte(line, '(')
	if end <= 0 || !strings.HasSuffix(line, ")") {
		return ""
	}
	return line[:end]
}
