package kafka

import (
	"context"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// An error about a broker that does not answer tells what to check.
func TestErrorsTellWhatToCheck(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := httptest.NewUnstartedServer(nil)
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	for name, c := range map[string]struct {
		url  string
		want string
		code nixie.Code
	}{
		"no listener": {unused, "cannot be reached: check host and port", nixie.CodeUnavailable},
		"unknown signer": {stranger.Listener.Addr().String() + "/t?tls=true", "give the certificate of its authority as ca=FILE",
			nixie.CodeDenied},
		"no TLS": {plain.Listener.Addr().String() + "/t?tls=true", "leave tls=true out", nixie.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ParseURL("kafka://" + c.url)
			if err != nil {
				t.Fatal(err)
			}
			a.Topic = "t"
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r, err := Read(ctx, a, "")
			if err == nil {
				r.Close()
			}
			if nixie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v", nixie.CodeOf(err), err)
			}
		})
	}
}
