// Release builds what is released, from the commit that is checked out, into the folder dist:
//
//	nixie_VERSION_OS_ARCH.tar.gz   the program for Linux and macOS, with its README and licences
//	nixie_VERSION_windows_amd64.zip
//	nixie_VERSION_ARCH.deb         the same for Debian, with a unit of systemd
//	nixie_VERSION_oci.tar          an image for containers, for Linux on amd64 and arm64
//	nixie_VERSION_sbom.cdx.json    the modules in the programs, with their licences
//	SHA256SUMS                     the checksums of all these
//
// The version is the tag of the commit. Two builds of one commit with one Go have the same bytes,
// wherever and whenever they are made: all times are that of the commit, and what is not
// committed is left out. Internal/release/check looks at the result as who downloads it would.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dist := flag.String("dist", "dist", "folder to build into; what is in it is removed")
	flag.Parse()
	if err := release(ctx, ".", *dist, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds everything from the repository into the folder dist.
func release(ctx context.Context, repository, dist string, out io.Writer) error {
	work, err := os.MkdirTemp("", "nixie-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	src, err := checkOut(ctx, repository, filepath.Join(work, "src"))
	if err != nil {
		return err
	}
	programs, err := src.programs(ctx, work, out)
	if err != nil {
		return err
	}
	if err := src.forShells(ctx, programs); err != nil {
		return err
	}
	var files []file
	for _, step := range []func(context.Context, []program) ([]file, error){src.archives, src.packages, src.image, src.sbom} {
		made, err := step(ctx, programs)
		if err != nil {
			return err
		}
		files = append(files, made...)
	}
	files = append(files, sums(files))
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "%6.1f MiB  %s\n", float64(len(f.body))/(1<<20), f.name)
		if err := os.WriteFile(filepath.Join(dist, f.name), f.body, 0o644); err != nil {
			return err
		}
	}
	return nil
}
