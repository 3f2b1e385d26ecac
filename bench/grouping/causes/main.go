// Command causes runs real tools that fail and writes what they print, a line of JSON each: causes
// to measure with how well failures are grouped.
//
//	go run ./grouping/causes [-o ../policy/testdata/causes.jsonl] [-only TOOL,TOOL]
//
// The tools and what makes them fail are in tools.txt. Tools that are not installed keep their
// lines. It needs a registry only to install the packages that tools.txt names.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/nixie-go/nixie/internal/proof/grouping"
)

//go:embed tools.txt
var table string

const (
	variants = 15
	web      = "127.0.0.1:8099" // answers with the status that the path begins with
)

func main() {
	out := flag.String("o", "../policy/testdata/causes.jsonl", "the file that is written; what it has of missing tools stays")
	only := flag.String("only", "", "runs these tools only, with commas between them; all others keep their lines")
	flag.Parse()
	if err := run(context.Background(), *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "causes:", err)
		os.Exit(1)
	}
}

// run writes the file anew, at its end.
func run(ctx context.Context, out, only string) error {
	before, err := grouping.Causes(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := map[string][]grouping.Cause{}
	for _, c := range before {
		old[c.Label()] = append(old[c.Label()], c)
	}
	server := &http.Server{Addr: web, Handler: http.HandlerFunc(answer), ReadHeaderTimeout: timeout}
	go server.ListenAndServe() //nolint:errcheck // tools that ask it then fail in another way, which the groups show
	defer server.Close()       //nolint:errcheck // the program ends
	scratch, err := newFolder(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch.root) //nolint:errcheck // a temporary folder
	var written bytes.Buffer
	lines := json.NewEncoder(&written)
	lines.SetEscapeHTML(false)
	for _, b := range parse(table) {
		made := old[b.label()]
		if only == "" || slices.Contains(strings.Split(only, ","), b.tool) {
			made = scratch.make(ctx, b, made)
		}
		for _, c := range made {
			if err := lines.Encode(c); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(out, written.Bytes(), 0o600)
}

// make returns what a cause prints now, or else what it printed before. It prepares what is no
// cause.
func (f *folder) make(ctx context.Context, b block, before []grouping.Cause) []grouping.Cause {
	if b.cause == "setup" {
		if said, err := f.prepare(ctx, b); err != nil {
			fmt.Fprintf(os.Stderr, "%s: its setup failed: %v\n%s\n", b.tool, err, said)
		}
		return nil
	}
	if made := f.runAll(ctx, b); made != nil {
		return made
	}
	fmt.Fprintf(os.Stderr, "%s: it cannot be run here or has not failed: its %d lines stay\n", b.label(), len(before))
	return before
}

// answer replies with the status that a path begins with.
func answer(w http.ResponseWriter, r *http.Request) {
	status := 0
	if _, err := fmt.Sscanf(r.URL.Path, "/%d/", &status); err != nil || status < 200 || status > 599 {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
}

// block is a script of the table.
type block struct {
	tool, language, cause, script string
	byHand                        bool
}

func (b block) label() string { return b.tool + "/" + b.cause }

func parse(table string) (blocks []block) {
	for part := range strings.SplitSeq(table, "\n=== ") {
		head, script, _ := strings.Cut(part, "\n")
		words := strings.Fields(head)
		if strings.HasPrefix(head, "#") || len(words) < 3 {
			continue
		}
		blocks = append(blocks, block{words[0], words[1], words[2], script, len(words) > 3})
	}
	return blocks
}

// runAll runs all variants of a cause, two at a time. It returns nil if one cannot be run or does
// not fail.
func (f *folder) runAll(ctx context.Context, b block) []grouping.Cause {
	list, fine := make([]grouping.Cause, variants), make([]bool, variants)
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range list {
		slots <- struct{}{}
		group.Go(func() {
			list[i], fine[i] = f.run(ctx, b, i+1)
			<-slots
		})
	}
	group.Wait()
	for _, is := range fine {
		if !is {
			return nil
		}
	}
	return list
}
