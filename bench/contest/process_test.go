package contest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// burning is the processor time that the child of TestServerTime uses.
const burning = 100 * time.Millisecond

// TestMain makes the test's own program a process of a server.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "burn" {
		for ProcessorTime() < burning {
		}
		os.Stdout.WriteString("burnt\n")
		_, _ = io.ReadAll(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// TestServerTime: the time of a child counts while it runs and after it ended.
func TestServerTime(t *testing.T) {
	if _, _, ok := used("self"); !ok {
		t.Skip("this system does not tell what processes use")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "burn")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	before := ServerTime(os.Getpid()) - ProcessorTime()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	alive := ServerTime(os.Getpid()) - ProcessorTime()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	gone := ServerTime(os.Getpid()) - ProcessorTime()
	const rounding = 4 * tick
	if alive-before < burning-rounding || gone-before < burning-rounding {
		t.Errorf("used %s, of which %s are seen while it runs and %s after it ended", burning, alive-before, gone-before)
	}
}
