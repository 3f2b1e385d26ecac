package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Bounds of the targets.
const (
	mostGrowth = 2  // MiB that the console adds to the binary
	mostIdle   = 60 // MiB of an idle nixie serve
)

// program builds nixie with the console and without, and runs nixie serve.
func (j *job) program(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/nixie-go/nixie").Output()
	if err != nil {
		return fmt.Errorf("find nixie: %w", err)
	}
	source := strings.TrimSpace(string(root))
	overlay, err := j.without(source)
	if err != nil {
		return err
	}
	with, err := build(ctx, source, filepath.Join(j.folder, "nixie"))
	if err != nil {
		return err
	}
	without, err := build(ctx, source, filepath.Join(j.folder, "without"), "-overlay", overlay)
	if err != nil {
		return err
	}
	j.targets = append(j.targets, target{"console-binary", float64(with-without) / (1 << 20), mostGrowth, "MiB",
		fmt.Sprintf("nixie has %.1f MiB with the console, %.1f without", float64(with)/(1<<20), float64(without)/(1<<20))})
	return j.idle(ctx)
}

// build returns the size of a binary as it is shipped.
func build(ctx context.Context, source, to string, flags ...string) (int64, error) {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", to}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/nixie")...)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w: %s", err, out)
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// without writes an overlay in which package console has its types and a handler that shows
// nothing, and returns its file.
func (j *job) without(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "console", "*.go"))
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for _, f := range files {
		replaced[f] = ""
	}
	main := filepath.Join(source, "console", "console.go")
	stub, err := stubOf(main)
	if err != nil {
		return "", err
	}
	replaced[main] = filepath.Join(j.folder, "stub.go")
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	overlay := filepath.Join(j.folder, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(replaced[main], stub, 0o600), os.WriteFile(overlay, data, 0o600))
}

// stubOf returns the exported types of a file, with a handler that does nothing.
func stubOf(file string) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("package console\nimport (\n\"context\"\n\"net/http\"\n\"time\"\n\"github.com/nixie-go/nixie\"\n" +
		"\"github.com/nixie-go/nixie/office\"\n)\n")
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE || !ast.IsExported(g.Specs[0].(*ast.TypeSpec).Name.Name) {
			continue
		}
		if err := format.Node(&b, set, g); err != nil {
			return nil, err
		}
		b.WriteString("\n")
	}
	b.WriteString("func Handler(*office.Office, Options) http.Handler { return http.NotFoundHandler() }\n")
	return b.Bytes(), nil
}

// idle measures the memory of nixie serve over the file with all letters, some time after its first
// page was asked for.
func (j *job) idle(ctx context.Context) error {
	if _, err := os.Stat(j.file()); err != nil {
		return nil // SQLite was not measured
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	const address = "127.0.0.1:18321"
	cmd := exec.CommandContext(ctx, filepath.Join(j.folder, "nixie"), "serve", "--store", "sqlite://"+j.file(), "--listen", address)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait() //nolint:errcheck // it is killed
	defer end()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		if answer, err := http.Get("http://" + address + "/"); err == nil {
			_ = answer.Body.Close() // it was only asked for
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if looks > 100 {
			return errors.New("nixie serve does not answer")
		}
		<-tick.C
	}
	<-time.After(15 * time.Second) // then it is idle
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	j.targets = append(j.targets, target{"console-idle", float64(kib) / 1024, mostIdle, "MiB",
		"nixie serve over all letters, after a look at its first page"})
	return err
}
