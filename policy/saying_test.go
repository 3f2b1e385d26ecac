package policy

import (
	"testing"

	"github.com/nixie-go/nixie"
)

// What libc, Go's net, curl and psql print when time may heal the cause makes a failed command
// transient. Nothing that they print makes it permanent, and an exit code with a meaning wins.
func TestForeignCommands(t *testing.T) {
	for _, c := range []struct {
		program string
		code    int
		line    string
		class   nixie.Class
		reason  nixie.Reason
	}{
		{"curl", 6, "", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"curl", 7, "", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"curl", 28, "", nixie.ClassTransient, nixie.ReasonTimeout},
		{"curl", 35, "", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"curl", 52, "", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"curl", 56, "", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"curl", 22, "curl: (22) The requested URL returned error: 404", nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{"sh", 7, "", nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{"sh", 7, "curl: (7) Failed to connect to a port 9 after 0 ms: Couldn't connect to server", nixie.ClassTransient,
			nixie.ReasonTransportUnavailable},
		{"psql", 2, `psql: error: connection to server at "127.0.0.1", port 9 failed: Connection refused`, nixie.ClassTransient,
			nixie.ReasonTransportUnavailable},
		{"psql", 2, "psql: error: FATAL:  the database system is starting up", nixie.ClassTransient, nixie.ReasonDependency},
		{"psql", 2, "psql: error: FATAL:  sorry, too many clients already", nixie.ClassTransient, nixie.ReasonResource},
		{"psql", 2, `psql: error: FATAL:  password authentication failed for user "a"`, nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{"ssh", 255, "ssh: connect to host a port 22: Connection timed out", nixie.ClassTransient, nixie.ReasonTimeout},
		{"ssh", 255, "ssh: Could not resolve hostname a: Temporary failure in name resolution", nixie.ClassTransient,
			nixie.ReasonTransportUnavailable},
		{"go", 2, "panic: dial tcp 127.0.0.1:9: connect: connection refused", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"go", 1, "dial tcp 127.0.0.1:9: i/o timeout", nixie.ClassTransient, nixie.ReasonTimeout},
		{"go", 1, "dial tcp: lookup a: no such host", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"node", 1, "Error: connect ECONNREFUSED 127.0.0.1:9", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"node", 1, "Error: read ECONNRESET", nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{"python3", 1, "ConnectionResetError: [Errno 104] Connection reset by peer", nixie.ClassTransient,
			nixie.ReasonTransportUnavailable},
		{"cp", 1, "cp: error writing 'a': No space left on device", nixie.ClassTransient, nixie.ReasonResource},
		{"sh", 2, "sh: 1: Cannot fork: Resource temporarily unavailable", nixie.ClassTransient, nixie.ReasonResource},
		{"sh", 1, "no such hostel", nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{"sh", 65, "connection refused", nixie.ClassPermanent, nixie.ReasonValidation},
		{"sh", 77, "connection refused", nixie.ClassPermanent, nixie.ReasonAuth},
		{"sh", 75, "connection refused", nixie.ClassTransient, nixie.ReasonHandler},
		{"sh", 1, "", nixie.ClassUnknown, nixie.ReasonCommandFailed},
	} {
		if class, reason := OfCommand(c.program, c.code, c.line); class != c.class || reason != c.reason {
			t.Errorf("%s, exit %d, %q: %s %s, want %s %s", c.program, c.code, c.line, class, reason, c.class, c.reason)
		}
	}
}
