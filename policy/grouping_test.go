package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/grouping"
)

// different lists pairs of texts that differ in what says what to repair.
var different = [][2]string{
	{"dial tcp 127.0.0.1:5432: connect: connection refused", "dial tcp 127.0.0.1:6379: connect: connection refused"},
	{"connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 127.0.0.1:6379"},
	{"https://pay.example.com/v1 failed", "https://mail.example.com/v1 failed"},
	{
		`Get "https://pay.example.com/v1": dial tcp: lookup pay.example.com: no such host`,
		`Get "https://mail.example.com/v1": dial tcp: lookup mail.example.com: no such host`,
	},
	{"KeyError: 'email'", "KeyError: 'age'"},
	{"KeyError: 'line1'", "KeyError: 'line2'"},
	{"ORA-00942: failed", "ORA-01653: failed"},
	{"Cannot read properties of undefined (reading 'id')", "Cannot read properties of undefined (reading 'name')"},
	{`(1062, "Duplicate entry 'x' for key 'a'")`, `(1452, "Cannot add or update a child row")`},
	{"ERROR 1045 (28000): Access denied", "ERROR 1049 (42000): Access denied"},
	{`rpc error: code = Unavailable desc = "x"`, `rpc error: code = NotFound desc = "x"`},
	{`rpc error: code = Unavailable desc = "connection refused"`, `rpc error: code = Unavailable desc = "name resolver error"`},
	{"exception from HRESULT: 0x80070005", "exception from HRESULT: 0x80004005"},
	{"Exception code 0xC0000005", "Exception code 0xC00000FD"},
	{"429 Client Error for url: https://a.example.com/x", "500 Client Error for url: https://a.example.com/x"},
	{"request failed with status code 429", "request failed with status code 500"},
	{"server responded with a status of 429", "server responded with a status of 500"},
	{"fetch failed: 503", "fetch failed: 404"},
	{"child exited by signal 9", "child exited by signal 15"},
	{"error TS2304: Cannot find name", "error TS2345: Cannot find name"},
	{"error[E0308]: mismatched", "error[E0382]: mismatched"},
	{"src/a.py:1:80: E501 line", "src/a.py:1:80: E712 line"},
	{`OperationalError: (2003, "Can't connect to MySQL server on 'db'")`, `OperationalError: (1045, "Access denied for user")`},
	{
		"connect to db.example.com port 5432 failed: Connection refused",
		"connect to db.example.com port 6379 failed: Connection refused",
	},
	{"redis:6379: connection refused", "redis:6380: connection refused"},
	{"curl: (6) Could not resolve host", "curl: (7) Could not resolve host"},
	{"connect ETIMEDOUT db.internal.example.com:3306", "connect ETIMEDOUT db.internal.example.com:5432"},
	{"[WinError 10061] refused", "[WinError 10060] refused"},
	{"'User' object has no attribute 'email'", "'User' object has no attribute 'phone'"},
	{`"email" is required`, `"phone" is required`},
	{"undefined method `charge' for nil:NilClass", "undefined method `refund' for nil:NilClass"},
	{
		`{"error":{"code":"card_declined","message":"Your card was declined."}}`,
		`{"error":{"code":"expired_card","message":"Your card has expired."}}`,
	},
	{`{"error": "not_found"}`, `{"error": "rate_limited"}`},
	{`{"email": 1}`, `{"phone": 1}`},
	{
		`Cannot invoke "com.shop.Customer.getEmail()" because "customer" is null`,
		`Cannot invoke "com.shop.Order.getTotal()" because "order" is null`,
	},
	{"called `Option::unwrap()` on a `None` value", "called `Result::unwrap()` on an `Err` value"},
	{"550 5.1.1 user unknown", "550 5.7.1 user unknown"},
	{"SQLSTATE[HY000] [2002] Connection", "SQLSTATE[HY000] [1045] Connection"},
	{
		"SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate",
		"SQLSTATE[23000]: Integrity constraint violation: 1452 Duplicate",
	},
	{"user.id is required", "user.name is required"},
	{"order.total is required", "order.total.eu.is required"},
	{"com.example.app has failed", "com.example.web has failed"},
	{"java.net.ConnectException: x", "java.net.SocketException: x"},
	{"unsupported operand type(s) for +: 'int' and 'str'", "unsupported operand type(s) for +: 'int' and 'list'"},
	{"Error 1146: x", "Error 1062: x"},
	{"unknown shorthand flag: 'x' in -x", "unknown flag"},
	{"No module named 'requests'", "No module named 'numpy'"},
	{"Cannot find module 'express'", "Cannot find module 'lodash'"},
	{`Undefined array key "email"`, `Undefined array key "phone"`},
	{"getaddrinfo ENOTFOUND a", "getaddrinfo EAI_AGAIN a"},
	{"invalid utf8 text", "invalid json text"},
	{"key 'orders' was not found", "key 'users' was not found"},
	{"child said error 5", "child said error 6"},
	{"unit svc-httpd is not ready", "unit svc-dhcpd is not ready"},
}

// same lists texts of one cause.
var same = [][]string{
	{"pod api-7c9d4f82b-x2k9q is not ready", "pod api-bcd24567f-bcdfg is not ready", "pod api-222222222-kkkkk is not ready"},
	{"pod api-7c9d4f82b-x2k9q is not ready", "pod api-xcxxqckcwg-mrgwf is not ready"},
	{"agent fluentd-7x2kq is not ready", "agent fluentd-gtrct is not ready"},
	{"job nightly-28391040-x2k9q failed", "job nightly-28391041-xcqnk failed"},
	{"No such customer: cus_NffrFeUfNV2Hib", "No such customer: cus_abcdefGhijklmn", "No such customer: cus_9s6XKzkNRiz8i3"},
	{"host a1.example.com is down", "host 10.0.0.7 is down", "host fe80::1 is down"},
	{"could not resolve host: stock.internal", "could not resolve host: db7.internal", "could not resolve host: files.lan"},
	{"getaddrinfo ENOTFOUND stock.internal", "getaddrinfo ENOTFOUND db7.internal"},
	{"no route from worker-1", "no route from worker-22"},
	{"task V1StGXR8_Z5jdHi6B-myT failed", "task Uakgb_J5m9g-0JDMbcJqL failed"},
	{"blk_-123 lost", "blk_456 lost"},
	{"instance i-0abcd1234ef567890 gone", "instance i-1234567890abcdef0 gone"},
	{"https://db1.example.com/a failed", "https://db2.example.com/b failed"},
	{"order-1234 of user7", "order-99 of user81"},
	{"job 01ARZ3NDEKTSV4RRFFQ69G5FAV lost", "job 01HZX7M2J8Q5WBTKY3N6RDCVAE lost"},
	{"user bob7@example.org", "user ann@mail.example.com"},
	{`unknown user "bob"`, `unknown user "ann"`},
	{`could not parse "bob": x`, `could not parse "ann": x`},
	{"open 'a b', 'bob': no such", "open 'a b', 'ann': no such"},
	{
		"read tcp 10.0.0.1:45112->10.0.0.7:5432: read: connection reset by peer",
		"read tcp 10.0.0.1:51234->10.0.0.9:5432: read: connection reset by peer",
	},
	{"db.example.com/10.0.0.7:5432 failed", "db2.example.com/10.0.0.8:5432 failed"},
	{"session k2j4h5g6 expired", "session 9d8fa7xq expired"},
	{"arn:aws:sqs:us-east-1:123456789012:jobs", "arn:aws:sqs:us-east-1:123456789013:jobs"},
	{"0xc000123456", "0xc0001234ff"},
	{`open "/data/a b.json": denied`, `open "/data/c.json": denied`},
	{"took 1m30s of 2m", "took 250ms of 1m"},
}

// What says what to repair makes another group, and what differs from message to message does not.
func TestCausesAreTold(t *testing.T) {
	for _, pair := range different {
		if shape := normalise(pair[0]); shape == normalise(pair[1]) {
			t.Errorf("%q and %q are one group: %s", pair[0], pair[1], shape)
		}
	}
	for _, texts := range same {
		for _, text := range texts[1:] {
			if first, other := normalise(texts[0]), normalise(text); first != other {
				t.Errorf("%q is another group than %q:\n%s\n%s", text, texts[0], other, first)
			}
		}
	}
}

// Random words of every known form are masked, but for the few that have no digit and could be
// words.
func TestRandomWordsAreMasked(t *testing.T) {
	const digits, small, capitals = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	r := rand.New(rand.NewPCG(17, 3))
	for _, c := range []struct {
		name, begin, alphabet string
		length                int
		least                 float64 // share in one group
	}{
		{"nanoid", "", small + capitals + digits + "_-", 21, 0.97},
		{"22 letters and digits", "", small + capitals + digits, 22, 0.99},
		{"14 letters and digits", "", small + capitals + digits, 14, 0.97},
		{"12 small letters and digits", "", small + digits, 12, 0.95},
		{"a payment service", "cus_", small + capitals + digits, 14, 1},
		{"a machine", "i-", digits + "abcdef", 17, 1},
		{"a ULID", "01", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24, 1},
		{"a hash", "", digits + "abcdef", 40, 1},
	} {
		const drawn = 2000
		shapes, most := map[string]int{}, 0
		for range drawn {
			word := []byte(c.begin)
			for range c.length {
				word = append(word, c.alphabet[r.IntN(len(c.alphabet))])
			}
			shape := normalise("item " + string(word) + " is gone")
			shapes[shape]++
			most = max(most, shapes[shape])
		}
		if share := float64(most) / drawn; share < c.least {
			t.Errorf("%s: %.3f are one group of %d, want %.3f", c.name, share, len(shapes), c.least)
		}
	}
}

// Names of programs are no random words.
func TestNamesAreKept(t *testing.T) {
	for _, name := range []string{
		"getUserById", "XMLHttpRequest", "NSURLErrorDomain", "HTTPSConnectionPool", "SQLITE_CONSTRAINT_UNIQUE", "toISOString",
		"TestFoo_Bar-Baz", "NullPointerException", "com.example.app", "java.net.ConnectException", "user.id", "main.go", "and/or",
		"Authentifizierung", "przedsiebiorstwo", "ECONNREFUSED", "ERR_STREAM_PREMATURE_CLOSE", "ActiveRecord::RecordNotFound",
	} {
		if shape := normalise("bad " + name + " here"); shape != "bad "+name+" here" {
			t.Errorf("%s became %s", name, shape)
		}
	}
}

var maskNames = [allMasks]string{
	maskURL: "url", maskUUID: "uuid", maskTime: "time", maskHost: "host", maskServer: "server", maskNumber: "number", maskPath: "path",
	maskEmail: "email", maskAddress: "address", maskMaker: "maker", maskPod: "pod", maskRandom: "random", maskQuoted: "quoted",
	maskHex: "hex", maskQuantity: "quantity", maskWord: "word", maskDigits: "digits",
}

// Over labelled logs of many systems the groups are right, and each mask does its part. The logs
// are no part of this repository: the test runs where they are.
func TestLabelledLogs(t *testing.T) {
	dir := grouping.FindLoghub("..")
	if dir == "" {
		t.Skip("the folder corpora/loghub is missing: put it into a neighbour of the repository, or name it in NIXIE_TEST_LOGHUB")
	}
	systems, err := grouping.Loghub(dir)
	if err != nil {
		t.Fatal(err)
	}
	score := func(without uint32, counts func(grouping.Line) bool) grouping.Score {
		var scores []grouping.Score
		for _, lines := range systems {
			var members []grouping.Pair
			for _, line := range lines {
				if counts(line) {
					n := normaliser{text: line.Text, without: without}
					members = append(members, grouping.Pair{Label: line.Label, Group: string(n.all())})
				}
			}
			scores = append(scores, grouping.Of(members))
		}
		return grouping.Mean(scores)
	}
	all := func(grouping.Line) bool { return true }
	for name, counts := range map[string]func(grouping.Line) bool{"all lines": all, "lines kept out": grouping.Line.KeptOut} {
		s := score(0, counts)
		t.Logf("%s: precision %.3f, recall %.3f, exact %.3f of %d", name, s.Precision, s.Recall, s.Exact, s.Members)
		if s.Precision < 0.99 || s.Recall < 0.96 || s.Exact < 0.85 {
			t.Errorf("%s: %+v, want precision 0.99, recall 0.96, exact 0.85", name, s)
		}
	}
	for kind := range allMasks {
		s := score(1<<kind, all)
		t.Logf("without %-8s: precision %.3f, recall %.3f, exact %.3f", maskNames[kind], s.Precision, s.Recall, s.Exact)
	}
	if slices.Contains(maskNames[:], "") {
		t.Error("a mask has no name")
	}
}
