package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bomTool lists the modules of a program with their licences. It is pinned, and no dependency of
// ours. What the go command asks a proxy about it, the modules that are there answer.
const bomTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
const offline = `GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" exec go install "$0"`

// bom is a list of parts in the form of CycloneDX. What we do not read is kept as it is.
type bom struct {
	Schema       string          `json:"$schema"`
	Format       string          `json:"bomFormat"`
	Spec         string          `json:"specVersion"`
	Version      int             `json:"version"`
	Metadata     json.RawMessage `json:"metadata"`
	Components   []part          `json:"components"`
	Dependencies []dependency    `json:"dependencies"`
}

// part is a module. Its first field in the JSON names it.
type part struct{ ref, text string }

func (p *part) UnmarshalJSON(text []byte) error {
	var named struct {
		Ref string `json:"bom-ref"`
	}
	err := json.Unmarshal(text, &named)
	*p = part{named.Ref, string(text)}
	return err
}

func (p part) MarshalJSON() ([]byte, error) { return []byte(p.text), nil }

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// sbom lists the modules of the programs of all systems. Each has a few of its own.
func (s *source) sbom(ctx context.Context, programs []program) ([]file, error) {
	bin := filepath.Join(s.dir, "bin")
	set := []string{"GOBIN=" + bin, "CGO_ENABLED=0", "GOFLAGS=-trimpath"}
	if _, err := run(ctx, s.dir, set, "sh", "-c", offline, bomTool); err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin) //nolint:errcheck // the clone is temporary
	var all bom
	on := map[string][]string{}
	for _, p := range programs {
		text, err := run(ctx, s.dir, p.environment(), filepath.Join(bin, "cyclonedx-gomod"), "app", "-json", "-noserial", "-notimestamp",
			"-std", "-licenses", "-assert-licenses", "-short-purls", "-output-version", "1.6", "-main", "cmd/nixie", ".")
		if err != nil {
			return nil, err
		}
		var one bom
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			return nil, fmt.Errorf("the list of %s: %w", p.os, err)
		}
		if all.Metadata == nil {
			all.Schema, all.Format, all.Spec, all.Version, all.Metadata = one.Schema, one.Format, one.Spec, one.Version, one.Metadata
		}
		all.Components = append(all.Components, one.Components...)
		for _, d := range one.Dependencies {
			on[d.Ref] = append(on[d.Ref], d.On...)
		}
	}
	slices.SortFunc(all.Components, func(a, b part) int { return strings.Compare(a.ref, b.ref) })
	all.Components = slices.CompactFunc(all.Components, func(a, b part) bool { return a.ref == b.ref })
	for ref, refs := range on {
		slices.Sort(refs)
		all.Dependencies = append(all.Dependencies, dependency{ref, slices.Compact(refs)})
	}
	slices.SortFunc(all.Dependencies, func(a, b dependency) int { return strings.Compare(a.Ref, b.Ref) })
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(all)
	return []file{{s.name("_sbom.cdx.json"), out.Bytes()}}, err
}
