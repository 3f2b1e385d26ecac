package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of the release.
type file struct {
	name string
	body []byte
}

// entry is a file or folder in an archive. The name of a folder ends with a slash.
type entry struct {
	name  string
	mode  int64
	owner int // of user and group
	body  []byte
}

// archives makes an archive of the program for each system: a folder with the program, how to
// begin, the licences, and examples of how to deploy it.
func (s *source) archives(_ context.Context, programs []program) ([]file, error) {
	common, err := s.entries("LICENSE", "NOTICE", "CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	deploy, err := s.folder("deploy")
	if err != nil {
		return nil, err
	}
	var files []file
	for _, p := range programs {
		name, readme, suffix := "nixie", "README.md", ".tar.gz"
		if p.os == "windows" {
			name, readme, suffix = "nixie.exe", "README-windows.md", ".zip"
		}
		text, err := s.read("internal/release/archive/" + readme)
		if err != nil {
			return nil, err
		}
		folder := s.name("_" + p.os + "_" + p.arch)
		all := []entry{
			{name: name, mode: 0o755, body: p.body},
			{name: "README.md", mode: 0o644, body: bytes.ReplaceAll(text, []byte("nixie_VERSION_OS_ARCH"), []byte(folder))},
		}
		all = append(append(all, common...), deploy...)
		if p.os != "windows" {
			for _, folder := range []string{"completions/", "man/", "man/man1/"} {
				all = append(all, entry{name: folder, mode: 0o755})
			}
			all = append(all, s.shell...)
		}
		for i := range all {
			all[i].name = folder + "/" + all[i].name
		}
		all = append([]entry{{name: folder + "/", mode: 0o755}}, all...)
		pack := tarGz
		if suffix == ".zip" {
			pack = zipped
		}
		body, err := pack(all, s.when)
		if err != nil {
			return nil, err
		}
		files = append(files, file{folder + suffix, body})
	}
	return files, nil
}

// entries reads files of the commit.
func (s *source) entries(names ...string) ([]entry, error) {
	var all []entry
	for _, name := range names {
		body, err := s.read(name)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: name, mode: 0o644, body: body})
	}
	return all, nil
}

// folder reads a folder of the commit with all that is below it.
func (s *source) folder(name string) ([]entry, error) {
	var all []entry
	err := filepath.WalkDir(filepath.Join(s.dir, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			all = append(all, entry{name: filepath.ToSlash(local) + "/", mode: 0o755})
			return nil
		}
		files, err := s.entries(filepath.ToSlash(local))
		all = append(all, files...)
		return err
	})
	return all, err
}

// tarred packs entries in their order.
func tarred(entries []entry, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.body)),
			ModTime: when, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := w.Write(e.body); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// gzipped compresses one file. The header has neither name nor time.
func gzipped(body []byte, level int) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

func tarGz(entries []entry, when time.Time) ([]byte, error) {
	body, err := tarred(entries, when)
	if err != nil {
		return nil, err
	}
	return gzipped(body, gzip.DefaultCompression)
}

func zipped(entries []entry, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		h.SetMode(fs.FileMode(e.mode))
		if strings.HasSuffix(e.name, "/") {
			h.SetMode(fs.FileMode(e.mode) | fs.ModeDir)
			h.Method = zip.Store
		}
		part, err := w.CreateHeader(&h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := part.Write(e.body); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// sums lists the checksums of files, as sha256sum -c reads them.
func sums(files []file) file {
	var lines []string
	for _, f := range files {
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(f.body), f.name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return file{"SHA256SUMS", []byte(strings.Join(lines, ""))}
}
