package main

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An image is a folder of blobs that are named by their checksums, as the OCI image layout
// specifies. It is made here, so no daemon and no registry has a part in it.

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"

	// unprivileged is the user and group of the program.
	unprivileged = 65532
)

// descriptor points to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	platform
	Created time.Time `json:"created"`
	Config  struct {
		User       string
		Env        []string
		Entrypoint []string
		Volumes    map[string]struct{}
		WorkingDir string
		Labels     map[string]string
		StopSignal string
	} `json:"config"`
	RootFS struct {
		Type  string   `json:"type"`
		Diffs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// layer is a layer of an image: its descriptor, and the checksum of its uncompressed bytes.
type layer struct {
	descriptor
	diff string
}

// blobs are the blobs of an image, by name.
type blobs map[string][]byte

// put keeps a blob.
func (b blobs) put(media string, body []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(body))
	b["blobs/sha256/"+sum] = body
	return descriptor{MediaType: media, Digest: "sha256:" + sum, Size: len(body)}
}

// putJSON keeps a value as a blob.
func (b blobs) putJSON(media string, value any) (descriptor, error) {
	body, err := json.Marshal(value)
	return b.put(media, body), err
}

// putLayer keeps entries as a layer.
func (b blobs) putLayer(entries []entry, when time.Time) (layer, error) {
	plain, err := tarred(entries, when)
	if err != nil {
		return layer{}, err
	}
	packed, err := gzipped(plain, gzip.DefaultCompression)
	return layer{b.put(mediaLayer, packed), fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}, err
}

// image makes an image for each architecture of Linux. They share all but the program.
func (s *source) image(ctx context.Context, programs []program) ([]file, error) {
	all := blobs{}
	entries, certificates, err := s.system(ctx)
	if err != nil {
		return nil, err
	}
	system, err := all.putLayer(entries, s.when)
	if err != nil {
		return nil, err
	}
	list := index{SchemaVersion: 2, MediaType: mediaIndex}
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		program, err := all.putLayer([]entry{{name: "usr/bin/", mode: 0o755}, {name: "usr/bin/nixie", mode: 0o755, body: p.body}}, s.when)
		if err != nil {
			return nil, err
		}
		d, err := all.putImage(s.imageConfig(p, certificates), system, program)
		if err != nil {
			return nil, err
		}
		list.Manifests = append(list.Manifests, d)
	}
	d, err := all.putJSON(mediaIndex, list)
	if err != nil {
		return nil, err
	}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": "nixie:" + s.version}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{d}})
	if err != nil {
		return nil, err
	}
	layout := []entry{
		{name: "oci-layout", mode: 0o644, body: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {name: "index.json", mode: 0o644, body: top},
		{name: "blobs/", mode: 0o755}, {name: "blobs/sha256/", mode: 0o755},
	}
	for name, body := range all {
		layout = append(layout, entry{name: name, mode: 0o644, body: body})
	}
	slices.SortFunc(layout[4:], func(a, b entry) int { return strings.Compare(a.name, b.name) })
	body, err := tarred(layout, s.when)
	return []file{{s.name("_oci.tar"), body}}, err
}

// putImage keeps the image of one architecture.
func (b blobs) putImage(c imageConfig, layers ...layer) (descriptor, error) {
	m := manifest{SchemaVersion: 2, MediaType: mediaManifest}
	c.RootFS.Type = "layers"
	for _, l := range layers {
		c.RootFS.Diffs = append(c.RootFS.Diffs, l.diff)
		m.Layers = append(m.Layers, l.descriptor)
	}
	var err error
	if m.Config, err = b.putJSON(mediaConfig, c); err != nil {
		return descriptor{}, err
	}
	d, err := b.putJSON(mediaManifest, m)
	d.Platform = &c.platform
	return d, err
}

// imageConfig says how the program starts: as a user without rights, with its store in /data.
func (s *source) imageConfig(p program, certificates string) imageConfig {
	c := imageConfig{platform: platform{p.arch, p.os}, Created: s.when}
	c.Config.User = fmt.Sprintf("%d:%d", unprivileged, unprivileged)
	c.Config.Env = []string{"PATH=/usr/bin:/bin", "HOME=/data", "NIXIE_STORE=sqlite:///data/nixie.db"}
	c.Config.Entrypoint = []string{"/usr/bin/nixie"}
	c.Config.Volumes = map[string]struct{}{"/data": {}}
	c.Config.WorkingDir = "/data"
	c.Config.StopSignal = "SIGTERM"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title": "nixie", "org.opencontainers.image.version": s.version,
		"org.opencontainers.image.revision": s.commit, "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source": "https://github.com/nixie-go/nixie", "nixie.ca-certificates": certificates,
	}
	return c
}

// system returns what a program finds on every system, and the version of the certificates:
// certificates of authorities, time zones, names of users, and folders to write in.
func (s *source) system(ctx context.Context) ([]entry, string, error) {
	texts, err := s.entries("LICENSE", "NOTICE")
	if err != nil {
		return nil, "", err
	}
	authorities, version, err := certificates(ctx)
	if err != nil {
		return nil, "", err
	}
	zones, err := s.zones(ctx)
	if err != nil {
		return nil, "", err
	}
	all := []entry{
		{name: "data/", mode: 0o755, owner: unprivileged},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:\nnixie:x:%d:\n", unprivileged)},
		{name: "etc/passwd", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n"+
			"nixie:x:%d:%[1]d:nixie:/data:/sbin/nologin\n", unprivileged)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: authorities},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/nixie/", mode: 0o755},
		{name: "usr/share/doc/nixie/LICENSE", mode: 0o644, body: texts[0].body},
		{name: "usr/share/doc/nixie/NOTICE", mode: 0o644, body: texts[1].body},
	}
	return append(all, zones...), version, nil
}

// authorities is the folder of Debian's package ca-certificates. The bundle in /etc has also what
// the owner of this machine added.
const authorities = "/usr/share/ca-certificates/mozilla"

// certificates returns the certificates of authorities of the distribution, and the version of its
// package.
func certificates(ctx context.Context) ([]byte, string, error) {
	version, err := run(ctx, "", nil, "dpkg-query", "-W", "-f", "${Version}", "ca-certificates")
	if err != nil {
		return nil, "", fmt.Errorf("the image has the certificates of Debian's package ca-certificates: install it here\n%w", err)
	}
	names, err := filepath.Glob(filepath.Join(authorities, "*.crt"))
	if err != nil || len(names) == 0 {
		return nil, "", fmt.Errorf("no certificates in %s: install the package ca-certificates: %w", authorities, err)
	}
	var all []byte
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			return nil, "", err
		}
		all = append(append(all, strings.TrimSpace(string(body))...), '\n')
	}
	return all, version, nil
}

// zones returns the time zones of the Go that built the program.
func (s *source) zones(ctx context.Context) ([]entry, error) {
	root, err := run(ctx, s.dir, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	r, err := zip.OpenReader(filepath.Join(root, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	const to = "usr/share/zoneinfo/"
	all := []entry{{name: to, mode: 0o755}}
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			all = append(all, entry{name: to + f.Name, mode: 0o755})
			continue
		}
		part, err := f.Open()
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("time zone %s: %w", f.Name, err)
		}
		all = append(all, entry{name: to + f.Name, mode: 0o644, body: body})
	}
	return all, nil
}
