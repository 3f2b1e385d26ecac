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

// A broker that cannot be asked is explained, and what to look at is said.
func TestUnreachedBroker(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
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
		"nobody listens":   {nobody, "cannot be reached: check host and port", nixie.CodeUnavailable},
		"signed by nobody": {stranger.Listener.Addr().String() + "/t?tls=true", "name who signed it by ca=FILE", nixie.CodeDenied},
		"no TLS":           {plain.Listener.Addr().String() + "/t?tls=true", "leave tls=true out", nixie.CodeUnavailable},
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
