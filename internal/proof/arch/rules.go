package arch

// The limits of files and functions, in lines, and of lines, in columns.
const (
	maxFileLines = 600
	maxFuncLines = 80
	maxCode      = 140
	maxComment   = 100
	tabWidth     = 4
)

// quiet rooms start no goroutine, so that their caller owns the only one.
var quiet = []string{".", "policy", "internal/items", "office", "internal/config"}

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
	"nixie.NewType", "sqlfile.Text", "sync.OnceValue", "sync.OnceValues",
}

// compilers are constructors that work at once, which each start of nixie would pay for.
var compilers = []string{"regexp.MustCompile", "template.Must"}
