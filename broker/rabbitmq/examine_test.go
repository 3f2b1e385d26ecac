package rabbitmq_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/rabbitmq"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// managed is a server with a management API, as its administrator uses it.
type managed struct {
	*raw
	api string
}

func newManaged(t *testing.T) *managed {
	s := testservers.ManagedRabbitMQ(t)
	m := &managed{connect(t, s.Addr), s.Management}
	m.at.Management = s.Management
	return m
}

// put sets something up by the API.
func (m *managed) set(path string, value any) {
	m.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		m.t.Fatal(err)
	}
	ask, err := http.NewRequestWithContext(limited(m.t), http.MethodPut, m.api+"/api/"+path, bytes.NewReader(text))
	if err != nil {
		m.t.Fatal(err)
	}
	ask.SetBasicAuth("guest", "guest")
	said, err := http.DefaultClient.Do(ask)
	if err != nil {
		m.t.Fatal(err)
	}
	_ = said.Body.Close() // only its status counts
	if said.StatusCode >= http.StatusBadRequest {
		m.t.Fatal(path, said.Status)
	}
}

// policy gives a queue one.
func (m *managed) policy(queue string, definition map[string]any) {
	m.t.Helper()
	m.set("policies/%2f/"+queue, map[string]any{"pattern": "^" + queue + "$", "apply-to": "queues", "definition": definition})
}

// found lists the names of the problems of a queue.
func found(t *testing.T, at rabbitmq.Address, limits broker.Limits, stages ...broker.Stage) (names []string, text string) {
	t.Helper()
	d, err := rabbitmq.Open(limited(t), rabbitmq.Config{Address: at, Stages: stages, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(limited(t)) }() // it holds nothing
	s, err := broker.New(broker.Config{Driver: d, Letters: "letters", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Check(limited(t), []string{at.Queue})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		names, text = append(names, p.Name), text+p.Text+"\n"
	}
	return names, text
}

// TestExamine compares settings of queues, as arguments and as policies, with what the consumer
// will do.
func TestExamine(t *testing.T) {
	m := newManaged(t)
	m.declareAs("letters", nil)
	safe := map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": "letters", "dead-letter-strategy": "at-least-once",
		"overflow": "reject-publish"}
	usual := broker.Limits{Attempt: time.Minute, Wait: 15 * time.Minute, Deliveries: 10}
	ways := []string{"arguments", "policy"}
	cases := []struct {
		name   string
		set    map[string]any
		limits broker.Limits
		want   string
		says   string
	}{
		{"nothing set", nil, usual, "", ""},
		{"limit above ours", map[string]any{"delivery-limit": 10}, usual, "", ""},
		{"limit below ours, letters nowhere", map[string]any{"delivery-limit": 9}, usual,
			"delivery-limit no-dead-letter-exchange", "9 deliveries"},
		{"ours is none", map[string]any{"delivery-limit": 99}, broker.Limits{Attempt: 1},
			"delivery-limit no-dead-letter-exchange", "is none"},
		{"letters may get lost", map[string]any{"delivery-limit": 3, "dead-letter-exchange": "",
			"dead-letter-routing-key": "letters"}, usual,
			"delivery-limit dead-letter-strategy", "at-least-once"},
		{"letters have no queue", with(safe, "message-ttl", 1000, "dead-letter-routing-key", "nowhere"), usual,
			"no-dead-letter-queue", "queue nowhere"},
		{"an exchange of its own", with(safe, "message-ttl", 1000, "dead-letter-exchange", "amq.topic"), usual, "", ""},
		{"letters go safely", with(safe, "delivery-limit", 3), usual, "delivery-limit", ""},
		{"messages end by age", map[string]any{"message-ttl": 60000}, usual, "no-dead-letter-exchange",
			"after 1m0s in the queue (message-ttl)"},
		{"ours end before", map[string]any{"message-ttl": 60000}, broker.Limits{Attempt: 1, Deliveries: 1, Age: time.Minute}, "", ""},
		{"the oldest are dropped", map[string]any{"max-length": 5}, usual, "no-dead-letter-exchange", "more than 5"},
		{"the oldest bytes are dropped", map[string]any{"max-length-bytes": 5, "overflow": "drop-head"}, usual,
			"no-dead-letter-exchange", "max-length-bytes"},
		{"new ones are refused", map[string]any{"max-length": 5, "overflow": "reject-publish"}, usual, "", ""},
		{"the queue goes", map[string]any{"expires": 60000}, usual, "queue-expires", "1m0s"},
		{"executions are long", nil, broker.Limits{Attempt: time.Hour}, "consumer-timeout", "--timeout is 1h0m0s"},
		{"retries wait long", nil, broker.Limits{Attempt: time.Minute, Wait: time.Hour},
			"consumer-timeout", "the longest wait of a retry"},
		{"executions without a limit", nil, broker.Limits{}, "", ""},
	}
	for n, c := range cases {
		for _, way := range ways {
			if queue := fmt.Sprintf("%s-%d", way, n); way == "policy" {
				m.policy(queue, with(c.set, "max-in-memory-length", 1000)) // a policy is never empty
				m.declareAs(queue, nil)
			} else {
				m.declareAs(queue, arguments(c.set))
			}
		}
	}
	for n, c := range cases {
		for _, way := range ways {
			got, text := found(t, m.on(fmt.Sprintf("%s-%d", way, n)), c.limits)
			if strings.Join(got, " ") != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%s, by %s: %q\n%s", c.name, way, got, text)
			}
		}
	}
	staged := m.declare(nil)
	if got, text := found(t, m.on(staged), broker.Limits{Attempt: time.Minute, Wait: time.Hour},
		broker.Stage{Channel: broker.ChannelName("{source}.retry.1h", staged), Delay: time.Hour}); len(got) > 0 {
		t.Errorf("retries wait on a stage: %s", text)
	}
	m.givesBack(t)
	m.examineLetters(t, usual)
	m.examineRights(t, usual)
}

// arguments are settings of a queue as its declaration has them.
func arguments(set map[string]any) amqp.Table {
	args := amqp.Table{}
	for name, value := range set {
		if n, is := value.(int); is {
			value = int64(n)
		}
		args["x-"+name] = value
	}
	return args
}

func with(set map[string]any, more ...any) map[string]any {
	all := map[string]any{}
	for name, value := range set {
		all[name] = value
	}
	for n := 0; n < len(more); n += 2 {
		all[more[n].(string)] = more[n+1]
	}
	return all
}

// givesBack looks only where nothing is lost by that, and the program does so too.
func (m *managed) givesBack(t *testing.T) {
	classic, limited, free := m.name(), m.declare(amqp.Table{"x-delivery-limit": int64(3)}), m.declare(nil)
	if _, err := m.ch.QueueDeclare(classic, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t)
	for queue, want := range map[string]bool{classic: true, limited: false, free: true, "none": false} {
		at := m.on(queue)
		if got := rabbitmq.GivesBack(t.Context(), at); got != want {
			t.Errorf("%s gives back: %v", queue, got)
		}
		if queue == "none" {
			continue
		}
		m.put(queue, amqp.Publishing{Body: []byte("b")})
		code, says := 0, "1 letter would be added"
		if !want {
			code, says = 2, "counts that as a delivery"
		}
		if said := p.run(code, "dlq", "adopt", at.String()+"?management="+m.api, "--dry-run"); !strings.Contains(said, says) {
			t.Errorf("dry run of %s: %s", queue, said)
		}
		m.until("it is given back", func() bool { return m.ready(queue) == 1 })
		at.Management = ""
		if rabbitmq.GivesBack(t.Context(), at) {
			t.Errorf("%s gives back, without an API that says so", queue)
		}
	}
}

func (m *managed) examineLetters(t *testing.T, limits broker.Limits) {
	m.policy("letters", map[string]any{"message-ttl": 1000, "max-length": 2, "expires": 3600000})
	queue := m.declare(nil)
	var got []string
	m.until("the policy counts", func() bool {
		got, _ = found(t, m.on(queue), limits)
		return len(got) > 0
	})
	if !slices.Equal(got, []string{"short-retention", "short-retention", "full-letters"}) {
		t.Errorf("letters: %q", got)
	}
}

// A user without the rights is told which one is missing, before anything is received. Where the
// API answers nothing, the settings are not known, unless the URL names it.
func (m *managed) examineRights(t *testing.T, limits broker.Limits) {
	queue := m.declare(nil)
	m.set("users/ann", map[string]any{"password": "a", "tags": ""})
	m.set("permissions/%2f/ann", map[string]any{"configure": ".*", "write": "^none$", "read": ".*"})
	at := m.on(queue)
	at.User, at.Password = "ann", "a"
	if got, text := found(t, at, limits); !slices.Equal(got, []string{"forbidden-exchange"}) || !strings.Contains(text, "amq.default") {
		t.Errorf("no right to write: %q %s", got, text)
	}
	m.set("permissions/%2f/ann", map[string]any{"configure": ".*", "write": ".*", "read": ".*"})
	m.refusesNamed(t, at, "give it the tag management")
	at.Management = ""
	if got, text := found(t, at, limits); !slices.Equal(got, []string{"settings-not-known"}) || !strings.Contains(text, "management=http") {
		t.Errorf("nothing is known: %q %s", got, text)
	}
	limits.Deliveries = 31
	if got, text := found(t, at, limits); !slices.Equal(got, []string{"settings-not-known", "delivery-limit"}) ||
		!strings.Contains(text, "20 deliveries") {
		t.Errorf("the limit is taken for that of version 4: %q %s", got, text)
	}
	at = m.on(queue)
	at.Management = "http://" + at.Hosts[0]
	m.refusesNamed(t, at, "")
}

func (m *managed) refusesNamed(t *testing.T, at rabbitmq.Address, says string) {
	t.Helper()
	d, err := rabbitmq.Open(limited(t), rabbitmq.Config{Address: at})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(limited(t)) }() // it holds nothing
	if _, err := d.Examine(limited(t), nil, broker.Limits{}); nixie.CodeOf(err) != nixie.CodeUnavailable ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("management at %s: %v", at.Management, err)
	}
}
