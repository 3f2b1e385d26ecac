package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/app"
)

// versionView is the JSON of version.
type versionView struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	SQLite   string `json:"sqlite"`
	Platform string `json:"platform"`
}

func newVersion(g *globals) *cobra.Command {
	return g.command(g.described("version"), func(context.Context, []string) error {
		v := versions()
		return g.object(v, func(w io.Writer) {
			fmt.Fprintf(w, "nixie %s (%s)\n%s, SQLite %s, %s\n", v.Version, v.Revision, v.Go, v.SQLite, v.Platform)
		})
	})
}

func versions() versionView {
	v := versionView{
		Version: "unknown", Revision: "unknown", Go: runtime.Version(), SQLite: app.SQLiteVersion(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+changes"
		}
	}
	v.Revision += modified
	return v
}
