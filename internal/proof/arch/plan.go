package arch

import "strings"

// Module is the import path of the root package.
const Module = "github.com/nixie-go/nixie"

// room is one package, or with a path that ends in "/..." that folder and all below it.
type room struct {
	path  string // below the module; "." is the root package
	floor int
	kind  kind
	sees  []string // rooms of its own floor that it may import as well
	only  []string // if set, it may import these rooms and no other, on any floor
	job   string
}

// kind limits who may import a room.
type kind string

const (
	open   kind = "open"   // every floor above
	hidden kind = "hidden" // internal/app alone
	proof  kind = "proof"  // tests and other proofs alone; it may itself import everything below
)

// assembler alone may import hidden rooms.
const assembler = "internal/app"

// plan lists every room, lowest floor first.
var plan = []room{
	{path: ".", floor: 0, kind: open, job: "words"},

	{path: "check", floor: 1, kind: open, job: "says what is wrong with a letter from elsewhere"},
	{path: "filter", floor: 1, kind: open, sees: []string{"internal/spelling"}, job: "the text of a filter, and what it matches"},
	{path: "lease", floor: 1, kind: open, job: "what stores, brokers and workers need to hold a delivery"},
	{path: "policy", floor: 1, kind: open, sees: []string{"filter", "lease"}, job: "decides, purely"},
	{path: "telemetry", floor: 1, kind: hidden, job: "observers that become metrics, traces and logs"},
	{path: "internal/command", floor: 1, kind: open, sees: []string{"filter", "policy"}, job: "runs a child process with limits"},
	{path: "internal/lines", floor: 1, kind: open, sees: []string{"filter", "internal/command", "internal/itemfile"},
		job: "messages and answers as lines of JSON"},
	{path: "internal/spelling", floor: 1, kind: open, job: "tells which name was meant"},
	{path: "internal/task", floor: 1, kind: open, job: "reads messages of other task queues"},
	{path: "internal/watchdog", floor: 1, kind: open, job: "ends a process that is stuck"},
	{path: "internal/items", floor: 1, kind: open, job: "reads lists of work"},
	{path: "internal/sqlfile", floor: 1, kind: open, job: "reads SQL statements from files"},
	{path: "internal/where", floor: 1, kind: open, sees: []string{"internal/items"}, job: "chooses letters by an expression"},
	{path: "internal/workflow", floor: 1, kind: open,
		sees: []string{"filter", "internal/command", "internal/items", "internal/spelling", "internal/where", "policy"},
		job:  "reads workflow files"},
	{path: "internal/itemfile", floor: 1, kind: open, sees: []string{"check", "policy"}, job: "reads and writes dead letter items"},

	{path: "store", floor: 2, kind: open, job: "persistence contract"},
	{path: "store/lifecycle", floor: 2, kind: open, sees: []string{"store"}, job: "decides what may happen to a letter, purely"},
	{path: "store/engine", floor: 2, kind: open, sees: []string{"store", "store/lifecycle"},
		job: "each verb of a store once, over a driver that keeps facts"},
	{path: "broker", floor: 2, kind: open, job: "driver contract"},

	{path: "worker", floor: 3, kind: open, job: "engine: the loop and the desk"},
	{path: "redrive", floor: 3, kind: open, job: "engine: moves letters back"},
	{path: "privacy", floor: 3, kind: hidden, job: "engine: masks and seals, given by option"},
	{path: "store/memory", floor: 3, kind: hidden, job: "leaf: the model"},
	{path: "store/sqlite", floor: 3, kind: hidden, job: "leaf: the embedded default"},
	{path: "store/postgres", floor: 3, kind: hidden, job: "leaf: many machines"},
	{path: "store/itemdir", floor: 3, kind: hidden, job: "leaf: one file per dead item"},
	{path: "broker/kafka", floor: 3, kind: hidden, job: "leaf"},
	{path: "broker/redis", floor: 3, kind: hidden, job: "leaf: mailboxes"},
	{path: "broker/rabbitmq", floor: 3, kind: hidden, job: "leaf: queues of RabbitMQ"},
	{path: "broker/redis/foreign", floor: 3, kind: hidden, job: "leaf: dead jobs of job queues"},

	{path: "office", floor: 4, kind: open, job: "everything an operator can do"},
	{path: "internal/runner", floor: 4, kind: open, job: "a command for each item of a list"},
	{path: "internal/letterfile", floor: 4, kind: open, sees: []string{"office"}, job: "reads and writes files of letters"},
	{path: "mapreduce", floor: 4, kind: open, sees: []string{"mapreduce/worktree"}, job: "a file of items and what is done to each"},
	{path: "mapreduce/worktree", floor: 4, kind: open, job: "a part of mapreduce"},
	{path: "loop", floor: 4, kind: open, job: "typed mailboxes, and loops that answer"},
	{path: "local", floor: 4, kind: open, only: []string{".", "store", "store/sqlite", "worker"},
		job: "a queue in a SQLite file and its worker, for programs that begin"},

	{path: "console", floor: 5, kind: open, only: []string{".", "filter", "office"}, job: "face: an office in a browser"},

	{path: "internal/config", floor: 6, kind: open, job: "assembly: one checked value"},
	{path: assembler, floor: 6, kind: open, sees: []string{"internal/config"}, job: "assembly: builds the running system"},
	{path: "internal/serve", floor: 6, kind: open, sees: []string{"internal/config", assembler}, job: "assembly: listens"},
	{path: "internal/cli", floor: 6, kind: open, sees: []string{"internal/config", assembler, "internal/serve"}, job: "assembly: commands"},
	{path: "cmd/nixie", floor: 6, kind: open, only: []string{"internal/cli"}, job: "assembly: main"},

	{path: "store/storetest", floor: 2, kind: proof, only: []string{".", "check", "filter", "lease", "policy", "store", "store/memory"},
		job: "what every store passes; the memory store is its model"},
	{path: "broker/brokertest", floor: 4, kind: proof, only: []string{".", "lease", "policy", "broker", "store", "store/memory", "worker"},
		job: "what every driver passes, with a worker on top"},
	{path: "console/browser", floor: 6, kind: proof, job: "looks at pages in a Chromium"},
	{path: "nixietest", floor: 4, kind: proof, only: []string{".", "lease", "policy", "store", "store/memory", "worker"},
		job: "runs a handler in virtual time, for tests of programs"},
	{path: "loop/looptest", floor: 4, kind: proof, only: []string{".", "loop", "store", "store/memory"}, job: "doubles of mailboxes"},
	{path: "internal/proof/...", floor: 6, kind: proof, job: "proofs and what they are made with"},
	{path: "internal/release/...", floor: 6, kind: proof, job: "builds what is released, and checks it"},
	{path: "bench/...", floor: 6, kind: proof, job: "benchmarks"},
	{path: "examples/...", floor: 6, kind: proof, job: "examples"},
}

// roomOf finds the row of a package.
func roomOf(path string) (room, bool) {
	for _, r := range plan {
		below, open := strings.CutSuffix(r.path, "...")
		if r.path == path || open && strings.HasPrefix(path+"/", below) {
			return r, true
		}
	}
	return room{}, false
}
