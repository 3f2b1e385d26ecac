package arch

// The limits of files and functions, in lines.
const (
	aimFileLines  = 300 // longer files are named in the log
	maxFileLines  = 600
	maxFuncLines  = 80
	maxClockTaken = 1 // places in a package that take time.Now as a value
)

// engines are the rooms whose time is given to them.
var engines = []string{"worker", "policy", "store", "store/...", "redrive", "office"}

// importRule forbids imports. A path that ends in "/..." stands for all below.
type importRule struct {
	imports []string
	in      []string // rooms it holds for; empty: everywhere
	except  []string // rooms it does not hold for
	tests   bool     // it holds for test files, too
	why     string
}

var importRules = []importRule{
	{
		imports: []string{"os/exec", "os/signal", "os/user", "net/http/...", "net/rpc/...", "net/smtp", "database/...", "log/...", "math/rand", "crypto/rand"},
		in:      []string{"policy"},
		why:     "policy is pure: the same facts give the same verdict, on every machine and in every replay",
	},
	{
		imports: []string{"os/exec"},
		except:  []string{"internal/command"},
		why:     "internal/command is the one place that starts children, so that all have limits and die with us",
	},
	{
		imports: []string{"C"}, tests: true,
		why: "the binary builds without a C compiler",
	},
	{
		imports: []string{"unsafe", "plugin"},
		why:     "nothing that ships needs it, and no test can show that it is right",
	},
	{
		imports: []string{"log"},
		why:     "a global logger has no owner: report through nixie.Observer or return the error",
	},
	{
		imports: []string{"expvar", "net/http/pprof"},
		why:     "it registers itself with the default mux on import",
	},
	{
		imports: []string{"testing", "testing/..."},
		why:     "what ships does not link the test framework",
	},
}

// libraryRules say which rooms a library may be seen in. Proofs and tests may
// import what they like.
var libraryRules = []importRule{
	{imports: []string{"github.com/spf13/..."}, except: []string{"internal/cli"}, why: "the command line is spelled in one place"},
	{imports: []string{"zombiezen.com/go/sqlite/...", "modernc.org/..."}, except: []string{"store/sqlite"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/jackc/..."}, except: []string{"store/postgres"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/redis/..."}, except: []string{"store/redis"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/twmb/..."}, except: []string{"broker/kafka", "internal/proof/testservers"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/rabbitmq/..."}, except: []string{"broker/rabbitmq"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/nats-io/..."}, except: []string{"broker/nats"}, why: "one leaf knows the driver"},
	{imports: []string{"github.com/aws/..."}, except: []string{"broker/sqs"}, why: "one leaf knows the driver"},
	{imports: []string{"go.opentelemetry.io/...", "github.com/prometheus/..."}, except: []string{"telemetry"}, why: "engines speak through nixie.Observer"},
	{imports: []string{"pgregory.net/...", "github.com/anishathalye/...", "github.com/rogpeppe/...", "go.uber.org/goleak"}, why: "a library for tests does not ship"},
}

// callRule forbids names of a package, called or taken as a value.
type callRule struct {
	pkg    string
	names  []string // forbidden
	only   []string // if set, all others are forbidden
	in     []string // rooms; empty: everywhere
	except []string
	files  fileSet
	value  int // so many times in a package a name may be taken as a value, not called
	why    string
}

// fileSet says which files of a room a rule reads.
type fileSet string

const (
	shipped fileSet = "shipped" // all but tests and proofs
	tests   fileSet = "tests"   // test files and proofs
)

var callRules = []callRule{
	{
		pkg: "time", names: []string{"Now", "Sleep", "Since", "Until"}, in: engines, files: shipped, value: maxClockTaken,
		why: "engines take their clock by option, so that tests own the time; one place may take time.Now as the default",
	},
	{
		pkg: "time", names: []string{"Sleep"}, files: tests,
		why: "a sleep is a guess: wait for the event, inject the clock, or sleep inside synctest.Test",
	},
	{
		pkg: "math/rand/v2", in: []string{"policy"}, files: shipped,
		names: []string{"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint64", "Uint64N", "N", "Float32", "Float64", "ExpFloat64", "NormFloat64", "Perm", "Shuffle"},
		why:   "these throw the process's own dice, which cannot be replayed: use rand.New with a given source",
	},
	{
		pkg: "os", only: []string{"ErrDeadlineExceeded", "ErrExist", "ErrNotExist", "ErrPermission"}, in: []string{"policy"}, files: shipped,
		why: "policy is pure: it may recognise an error of the system and ask the system nothing",
	},
	{
		pkg: "net", only: []string{"Error", "OpError", "DNSError", "AddrError", "ErrClosed"}, in: []string{"policy"}, files: shipped,
		why: "policy is pure: it may recognise an error of the network and ask the network nothing",
	},
	{
		pkg: "os", names: []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, except: []string{"internal/config", "internal/command"}, files: shipped,
		why: "internal/config is the only reader of the environment (internal/command hands it on to children)",
	},
	{
		pkg: "os", names: []string{"StartProcess"}, except: []string{"internal/command"}, files: shipped,
		why: "internal/command is the one place that starts children",
	},
	{
		pkg: "syscall", names: []string{"ForkExec", "StartProcess", "Exec"}, except: []string{"internal/command"}, files: shipped,
		why: "internal/command is the one place that starts children",
	},
	{
		pkg: "os", names: []string{"Exit"}, except: []string{"cmd/nixie"}, files: shipped,
		why: "an exit anywhere else runs no deferred calls: return the error",
	},
	{
		pkg: Module, names: []string{"NextState", "NextStatus"}, except: []string{"store/lifecycle"}, files: shipped,
		why: "store/lifecycle decides what becomes of messages and letters, once for all: ask it",
	},
	{
		pkg: "context", names: []string{"TODO"}, files: shipped,
		why: "every call has a caller whose context it takes",
	},
	{
		pkg: "net/http", names: []string{"DefaultClient", "DefaultServeMux", "Get", "Post", "PostForm", "Head", "Handle", "HandleFunc", "ListenAndServe"}, files: shipped,
		why: "these share state with every other package and have no deadline",
	},
}

// quiet are the rooms that start no goroutine: who calls them owns the only one.
var quiet = []string{".", "policy", "audit", "internal/items", "office", "internal/config"}

// bannedNames say nothing about what is inside.
var bannedNames = []string{
	"util", "utils", "common", "helper", "helpers", "core", "port", "ports", "adapter", "adapters",
	"shared", "base", "types", "models", "misc", "lib", "impl", "interfaces",
}

// constructors are the calls whose result may be a package variable: it cannot
// be changed through the name that holds it.
var constructors = []string{
	"errors.New", "fmt.Errorf", "nixie.Errorf", "Errorf",
	"regexp.MustCompile", "template.Must", "strings.NewReplacer",
	"nixie.NewType", "sqlfile.Texts",
}

// deskOnly: what a face may name of package worker.
var deskOnly = []string{"Desk", "NewDesk", "DeskConfig"}
