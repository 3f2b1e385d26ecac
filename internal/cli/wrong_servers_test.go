//go:build linux

package cli_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

func wrongAddresses() []wrongInput {
	return []wrongInput{
		{"a scheme of a store", line("dlq list --store mysql://u:hunter2@h/d"), 2,
			`scheme "mysql" is unknown, known are sqlite, postgres and itemdir`},
		{"a store of no kind", line("dlq list --store store"), 2, "or a file that ends in .db"},
		{"a port out of range", line("dlq list --store postgres://u:hunter2@h:99999/d"), 2,
			"port of the store's URL is not from 1 to 65535"},
		{"a password with a percent sign", line("dlq list --store postgres://u:hunter2%zz@h/d"), 2, "a password as %2F and so on"},
		{"an sslmode", line("dlq list --store postgres://u:hunter2@h/d?sslmode=maybe"), 2,
			`parameter sslmode of the store's URL is "maybe": no such value is taken`},
		{"a root certificate of PostgreSQL", line("dlq list --store postgres://u:hunter2@h/d?sslmode=verify-full&sslrootcert=none.pem"), 2,
			`parameter sslrootcert of the store's URL is "none.pem": that file cannot be read: check its path`},
		{"a number of connections", line("dlq list --store postgres://u:hunter2@h/d?pool_max_conns=x"), 2, "parameter pool_max_conns of"},
		{"a scheme of a broker", line("consume nats://h/q -- true"), 2,
			"give a URL like kafka://host:9092/topic, redis://host:6379/mailbox or rabbitmq://host:5672/queue"},
		{"a port of a broker", line("consume kafka://127.0.0.1:99999/t --group g -- true"), 2, "give a number from 1 to 65535"},
		{"a password of Redis", line("consume redis://:hunter2%zz@h/m -- true"), 2, "write %XX for special characters of a password"},
		{"a certificate of Kafka", line("consume kafka://h:9092/t?tls=true&ca=none.pem --group g -- true"), 2,
			"ca of the broker: open none.pem: no such file or directory: name a file with certificates in PEM"},
		{"a certificate of Redis that is text", line("consume rediss://h/m?ca=a.txt -- true"), 2, "a.txt has no certificate in PEM"},
		{"an address of others", line("serve --listen 0.0.0.0:1"), 2, "give a loopback address such as 127.0.0.1:1"},
		{"a port that is out of range", line("serve --listen 127.0.0.1:99999"), 2, "is out of range: give one from 0 to 65535"},
		{"an address without a port", line("serve --listen x"), 2, `--listen: "x" has no port: give an address such as 127.0.0.1:8321`},
	}
}

func wrongServers() []wrongInput {
	return []wrongInput{
		{"no PostgreSQL there", line("dlq list --store postgres://u:hunter2@127.0.0.1:1/d"), 1,
			"cannot be reached: check host and port, and that the server runs: "},
		{"no such host", line("dlq list --store postgres://u:hunter2@no.invalid/d"), 1, "cannot be reached: check host and port"},
		{"a wrong password of PostgreSQL", asking("dlq list --store postgres://u:hunter2@SERVER/d?sslmode=disable",
			refusal("28P01", `password authentication failed for user "u"`)), 4, `does not let role "u" in: check its name and password`},
		{"no such database", asking("dlq list --store postgres://u:hunter2@SERVER/d?sslmode=disable",
			refusal("3D000", `database "d" does not exist`)), 1, "there is no such database: create it, or name another one"},
		{"PostgreSQL without TLS", asking("dlq list --store postgres://u:hunter2@SERVER/d?sslmode=require", "N"), 1,
			"answers, and no connection was made: check sslmode in the URL, and that a PostgreSQL listens there"},
		{"not PostgreSQL, but another server", asking("dlq list --store postgres://u:hunter2@SERVER/d?sslmode=disable",
			"HTTP/1.1 400 no\r\n\r\n"), 1,
			"answers, and no connection was made: check sslmode in the URL, and that a PostgreSQL listens there"},
		{"no Kafka there", line("consume kafka://127.0.0.1:1/t --group g -- true"), 1,
			"the broker cannot be reached: check host and port, and that it runs: "},
		{"no Redis there", line("consume redis://127.0.0.1:1/m -- true"), 1,
			"the server cannot be reached: check host and port, and that it runs: "},
		{"a wrong password of Redis", asking("consume redis://:hunter2@SERVER/m -- true",
			"-WRONGPASS invalid username-password pair or user is disabled.\r\n"), 4, "password"},
		{"no Redis, but another server", asking("consume redis://SERVER/m -- true", "HTTP/1.1 400 no\r\n\r\n"), 1, "redis"},
		{"a port in use", func(d *workspace) []string {
			l := listen(d.t)
			return []string{"serve", "--demo", "--listen", l.Addr().String()}
		}, 1, "is taken: end the program that has it, or give another one by --listen"},
	}
}

// asking is a command line that asks a server, SERVER, which gives the same answer to everything.
func asking(text, answer string) func(*workspace) []string {
	return func(d *workspace) []string {
		l := listen(d.t)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go answerAll(conn, answer)
			}
		}()
		return strings.Fields(strings.ReplaceAll(text, "SERVER", l.Addr().String()))
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func answerAll(conn net.Conn, answer string) {
	defer conn.Close() //nolint:errcheck // the other side has gone
	for some := make([]byte, 1<<10); ; {
		if _, err := conn.Read(some); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// refusal is a message by which PostgreSQL refuses a connection.
func refusal(code, text string) string {
	fields := fmt.Sprintf("SFATAL\x00VFATAL\x00C%s\x00M%s\x00\x00", code, text)
	n := len(fields) + 4
	return "E" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + fields
}
