package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/store"
)

// serveFlags are the flags of nixie serve.
type serveFlags struct {
	*globals
	logFlags
	listen, pprof string
}

// serveView is the JSON of serve.
type serveView struct {
	Address string `json:"address"`
	Pprof   string `json:"pprof"` // empty: none
}

func newServe(g *globals) *cobra.Command {
	f := &serveFlags{globals: g}
	return g.command(g.described("serve"), f.run, f)
}

func (f *serveFlags) register(fs *pflag.FlagSet) {
	f.logFlags.register(fs)
	fs.StringVar(&f.listen, "listen", "", "loopback address to listen on; port 0 takes a free one (default $NIXIE_LISTEN, else "+
		"127.0.0.1:8321)")
	fs.StringVar(&f.pprof, "pprof", "", "loopback address for profiles of this program (default $NIXIE_PPROF, else none)")
}

func (f *serveFlags) read(g *globals) error { return g.format(asTable, asWide, asJSON, asJSONL) }

func (f *serveFlags) run(ctx context.Context, _ []string) error {
	log, err := f.logger(f.globals)
	if err != nil {
		return err
	}
	told, tell, err := f.observe(ctx, true, log)
	if err != nil {
		return err
	}
	server, err := serve.New(serve.Config{
		Listen: cmp.Or(f.listen, f.config.Of("listen")), Flag: "--listen", Pprof: cmp.Or(f.pprof, f.config.Of("pprof")),
		Metrics: told.Metrics(), Version: versions(), Clock: f.Now, Log: log,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	return f.withStore(app.Options{Owner: f.owner(), Observer: told.Observer()}, func(st store.Store) error {
		defer tell()
		if err := told.Gauges(func(ctx context.Context) (app.Numbers, error) { return app.Overview(ctx, st) }); err != nil {
			return err
		}
		server.Use(st)
		v := serveView{server.Address(), server.PprofAddress()}
		if err := f.object(v, func(w io.Writer) {
			fmt.Fprintf(w, "http://%s\n", v.Address)
			if v.Pprof != "" {
				fmt.Fprintf(w, "http://%s/debug/pprof/\n", v.Pprof)
			}
		}); err != nil {
			return err
		}
		end := watchInterrupts(ctx, func() { f.say("nixie: requests may end; interrupt again to end them now") }, server.Abort)
		defer end()
		return server.Run(ctx)
	})
}
