package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nixie-go/nixie/internal/proof/grouping"
	"github.com/nixie-go/nixie/policy"
)

const (
	shown     = "/srv/shop"     // what the lines have for the folder of the run
	shownHome = "/srv/home"     // and for the home of who runs it
	keptOf    = 600             // bytes that are kept of each end of an output
	timeout   = 2 * time.Minute // of one script
)

// folder runs scripts below its root.
type folder struct {
	root    string
	env     []string
	replace *strings.Replacer
}

func newFolder(ctx context.Context) (*folder, error) {
	root, err := os.MkdirTemp("", "causes")
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(root, "scratch"), 0o755); err != nil {
		return nil, err
	}
	f := &folder{root: root, replace: strings.NewReplacer(root, shown, home, shownHome)}
	f.env = append(os.Environ(), "root="+root, "web=http://"+web, "HOME="+root, "LC_ALL=C", "GOFLAGS=-mod=mod",
		"TMPDIR="+filepath.Join(root, "scratch"), "GOCACHE="+strings.TrimSpace(string(cache)), "NO_COLOR=1",
		"RUSTUP_HOME="+orElse(os.Getenv("RUSTUP_HOME"), home+"/.rustup"), "CARGO_HOME="+orElse(os.Getenv("CARGO_HOME"), home+"/.cargo"))
	return f, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// prepare runs the setup of a tool.
func (f *folder) prepare(ctx context.Context, b block) (said []byte, err error) {
	c := exec.CommandContext(ctx, "sh", "-e", "-c", b.script)
	c.Dir, c.Env = f.root, f.env
	return c.CombinedOutput()
}

// Values of the variants, one each.
const (
	users = "ann bob carla dmitri sven.o farid greta hana j.smith rita li42 maria-lopez noah7 olga x9_ops"
	hosts = "db1.shop.invalid pg-main.internal cache.eu.shop.example api.shop.test wh-3.lan mail.shop.invalid " +
		"n17.dc2.internal stock.internal w3.shop.example core.shop.corp db.eu-west-1.shop.invalid shard04.internal auth.shop.test " +
		"node-a.cluster.local mq2.eu.shop.test"
	files = "orders prices-7 invoice_2041 a17 tariffs_2 customers batch-2026-07-01 rates report2 depot-18 q3-eu lines_b " +
		"night import_17 parcels"
)

// values returns the variables of a variant.
func values(variant int) map[string]string {
	seed := uint64(17)
	if variant%5 == 0 { // kept out
		seed = 39
	}
	r := rand.New(rand.NewPCG(seed, uint64(variant)))
	drawn := func(alphabet string, n int) string {
		word := make([]byte, n)
		for i := range word {
			word[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(word)
	}
	const hex = "0123456789abcdef"
	at := variant - 1
	return map[string]string{
		"user": strings.Fields(users)[at], "host": strings.Fields(hosts)[at], "file": strings.Fields(files)[at],
		"ip":   fmt.Sprintf("127.%d.%d.%d", 1+r.IntN(200), r.IntN(250), 2+r.IntN(250)),
		"uuid": drawn(hex, 8) + "-" + drawn(hex, 4) + "-4" + drawn(hex, 3) + "-a" + drawn(hex, 3) + "-" + drawn(hex, 12),
		"hex":  drawn(hex, 10),
		"num":  fmt.Sprint(5 + r.IntN(1<<(3+r.IntN(9)))),
		"pad":  strings.Repeat("\n", 1+r.IntN(40)),
	}
}

// run runs a variant of a cause, and reports whether it failed by itself.
func (f *folder) run(ctx context.Context, b block, variant int) (c grouping.Cause, failed bool) {
	has := values(variant)
	dir := filepath.Join(f.root, "v", b.tool+"-"+b.cause, has["user"], fmt.Sprintf("run-%s", has["num"]))
	has["dir"] = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c, false
	}
	env := f.env
	for name, value := range has {
		env = append(env[:len(env):len(env)], name+"="+value)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stderr, stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", b.script)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdout = dir, env, &stderr, &stdout
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() <= 0 || exit.ExitCode() == 127 && b.tool != "bash" {
		return c, false
	}
	item := map[string]string{}
	for name, value := range has {
		if name != "pad" && name != "dir" && name != "file" && uses(b.script, name) {
			item[name] = value
		}
	}
	if written := inScript.FindAllString(b.script, -1); len(written) > 0 {
		item["file"] = f.clean(os.Expand(written[len(written)-1], func(name string) string { return has[name] }))
	}
	data, err := json.Marshal(item)
	return grouping.Cause{
		Tool: b.tool, Language: b.language, Name: b.cause, Variant: variant, ByHand: b.byHand, Exit: exit.ExitCode(),
		Stderr: f.output(stderr.Bytes()), Stdout: f.output(stdout.Bytes()), Item: data,
	}, err == nil
}

func uses(script, name string) bool { return strings.Contains(script, "$"+name) }

// inScript matches the file that a script names, as the item would.
var inScript = regexp.MustCompile(`(?:\$dir/|/data/\$user/)?[a-z_-]*\$\{?file\}?(?:\.[a-z.]*[a-z]|_test\.go)?`)

// output returns what is kept of an output.
func (f *folder) output(data []byte) string {
	data = []byte(f.clean(string(data)))
	if len(data) > 2*keptOf {
		data, _ = policy.JoinEnds(data[:keptOf], data[len(data)-keptOf:], int64(len(data)-2*keptOf))
	}
	return string(data)
}

// clean leaves nothing of this machine in a text.
func (f *folder) clean(text string) string {
	for _, one := range ofMachine {
		text = one.pattern.ReplaceAllString(text, one.by)
	}
	return strings.ToValidUTF8(f.replace.Replace(text), "\uFFFD")
}

// ofMachine lists where tools are installed, and what names a registry.
var ofMachine = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`/[\w/]*/\.pyenv/(?:versions/[\d.]+/|shims/)`), "/usr/"},
	{regexp.MustCompile(`/[\w/]*/\.(?:cargo|rustup)/(?:\S*/)?`), "/usr/lib/rust/"},
	{regexp.MustCompile(`(location searched:) \S+ index`), "$1 registry.invalid index"},
}
