package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
)

// configure loads the configuration. A few commands need none, and work when it is wrong.
func (g *globals) configure(cmd *cobra.Command) (err error) {
	switch path := pathOf(cmd); {
	case path == "version", strings.HasPrefix(path, "completion"), strings.HasPrefix(path, "__complete"), strings.HasPrefix(path, "help"):
		return nil
	}
	if g.config, err = config.Load(g.file, g.Env); err == nil {
		g.Env = g.config.Environment()
	}
	return err
}

// pathOf returns the names of a command without "nixie".
func pathOf(c *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "nixie"), " ")
}

func newConfig(g *globals) *cobra.Command {
	return g.family("config", newConfigPrint(g), newConfigValidate(g))
}

func newConfigPrint(g *globals) *cobra.Command {
	return g.command(g.described("config print"), func(context.Context, []string) error {
		return listed(g, "", []column[config.Value]{{name: "setting"}, {name: "value", kind: flex}, {name: "source"}})(g.values(), nil)
	})
}

// values returns all settings as they apply, also those that have a default of this machine.
func (g *globals) values() []config.Value {
	list := g.config.List()
	for i := range list {
		switch v := &list[i]; v.Setting {
		case "store":
			if g.store != "" {
				v.Source = "--store"
			}
			url, _ := config.StoreURL(g.store, g.Env) // without a folder there is no default
			v.Value = app.Shown(url)
		case "actor":
			v.Value = config.Actor(g.Env)
		}
	}
	return list
}

// validView is the JSON of config validate.
type validView struct {
	File string `json:"file"` // empty: none
}

func newConfigValidate(g *globals) *cobra.Command {
	return g.command(g.described("config validate"), func(context.Context, []string) error {
		if _, err := app.NewMask(config.MaskPatterns(nil, g.Env), nil); err != nil {
			return err
		}
		return g.object(validView{g.config.Path}, func(w io.Writer) {
			fmt.Fprintf(w, "%s: all settings are valid\n", escapeLine(cmp.Or(g.config.Path, "no file")))
		})
	})
}
