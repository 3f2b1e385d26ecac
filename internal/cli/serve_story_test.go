package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// listening counts the stories.
var listening atomic.Int32

// loopback is an address of this machine that no other story uses. Only Linux has such addresses.
func loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8&0x7d, pid&0xff, 1+listening.Add(1)%250)
}

// get prints the body of an answer, which has to have a status: get STATUS URL [HOST]. It asks
// until the server listens and its answer has the status: answers are kept for a moment.
func get(ts *testscript.TestScript, _ bool, args []string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	status, body, err := 0, []byte(nil), error(nil)
	within(10*time.Second, func() bool {
		var answer *http.Response
		request, wrong := http.NewRequest(http.MethodGet, args[1], nil)
		ts.Check(wrong)
		if len(args) > 2 {
			request.Host = args[2]
		}
		if answer, err = client.Do(request); err != nil {
			return !errors.Is(err, syscall.ECONNREFUSED)
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		status = answer.StatusCode
		body, err = io.ReadAll(answer.Body)
		return strconv.Itoa(status) == args[0]
	})
	ts.Check(err)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s\n%s", status, args[0], body)
	}
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}
