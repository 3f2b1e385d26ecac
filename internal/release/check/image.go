package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxStop bounds how long the program takes to end after SIGTERM.
const maxStop = time.Minute

// image is the unpacked image of this machine.
type image struct {
	root   string
	config struct {
		User, WorkingDir string
		Env, Entrypoint  []string
	}
}

// checkImage starts the entry point of the image as process 1 of a namespace, as the user of the
// image: a drain, then a worker that is told to stop. The image has no program but nixie, so that
// is the command as well.
func checkImage(ctx context.Context, r *release) (string, error) {
	if err := needs("unshare", "chroot", "tar"); err != nil {
		return "", err
	}
	i, err := r.unpack(ctx)
	if err != nil {
		return "", err
	}
	for _, at := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin"} {
		if _, err := os.Stat(filepath.Join(i.root, at)); err != nil {
			return "", err
		}
	}
	for _, do := range []struct{ args, want string }{
		{"version", "nixie v" + r.version + " "},
		{"enqueue orders --key a", ""},
		{"work orders --drain -- /usr/bin/nixie version", "1 succeeded"},
		{"enqueue orders --key b", ""},
	} {
		cmd := i.start(ctx, strings.Fields(do.args)...)
		cmd.Stdin = strings.NewReader(`{"id": 1}`)
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), do.want) {
			return "", fmt.Errorf("nixie %s: %w, want %q:\n%s", do.args, err, do.want, said)
		}
	}
	if err := i.stop(ctx); err != nil {
		return "", err
	}
	return "its layers were unpacked: as process 1 and user " + i.config.User + " it drained a queue, and ended after SIGTERM", nil
}

// unpack unpacks the layers of the image for this machine.
func (r *release) unpack(ctx context.Context) (*image, error) {
	layout := filepath.Join(r.work, "layout")
	i := &image{root: filepath.Join(r.work, "image")}
	if _, err := command(ctx, "mkdir", layout, i.root); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "tar", "-xf", r.path("_oci.tar"), "-C", layout); err != nil {
		return nil, err
	}
	type descriptor struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	blob := func(d descriptor) string {
		return filepath.Join(layout, "blobs", strings.Replace(d.Digest, ":", "/", 1))
	}
	read := func(path string, into any) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	var list struct{ Manifests []descriptor }
	if err := read(filepath.Join(layout, "index.json"), &list); err != nil {
		return nil, err
	}
	if err := read(blob(list.Manifests[0]), &list); err != nil {
		return nil, err
	}
	for _, of := range list.Manifests {
		if of.Platform.Architecture != runtime.GOARCH {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		if err := read(blob(of), &manifest); err != nil {
			return nil, err
		}
		for _, l := range manifest.Layers {
			if _, err := command(ctx, "tar", "-xzpf", blob(l), "--numeric-owner", "-C", i.root); err != nil {
				return nil, err
			}
		}
		var config struct{ Config any }
		config.Config = &i.config
		return i, read(blob(manifest.Config), &config)
	}
	return nil, fmt.Errorf("no image for %s", runtime.GOARCH)
}

// start makes a command that runs the entry point with arguments.
func (i *image) start(ctx context.Context, args ...string) *exec.Cmd {
	const enter = `mkdir -p "$0/proc" "$0/dev" && mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec env -i "$@"`
	all := append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, i.root}, i.config.Env...)
	all = append(all, "/usr/sbin/chroot", "--userspec="+i.config.User, i.root)
	all = append(append(all, i.config.Entrypoint...), args...)
	return exec.CommandContext(ctx, "unshare", all...)
}

// stop starts a worker, waits until it ran a command, and sends SIGTERM to it as process 1.
func (i *image) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*maxStop)
	defer cancel()
	cmd := i.start(ctx, "work", "orders", "--", "/usr/bin/nixie", "version")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "nixie v") {
		return fmt.Errorf("the worker printed %q: %w", line, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		return err
	}
	process, err := os.FindProcess(first)
	if err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("after SIGTERM: %w", err)
	}
	return nil
}
