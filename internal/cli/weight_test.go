package cli_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/internal/cli"
)

// weighed is nixie, and says at the end how much memory it had. What the system
// says of a child that has ended counts the memory of the parent as well, which the
// child had for a moment.
func weighed() int {
	code := cli.Main(os.Args[1:], cli.System())
	fmt.Fprintln(os.Stderr, resident())
	return code
}

// resident is the most memory that this process has had in use, 0 where the system
// does not say.
func resident() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
