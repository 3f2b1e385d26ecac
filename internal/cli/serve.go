package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/serve"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// serveFlags are the flags of nixie serve.
type serveFlags struct {
	*globals
	logFlags
	listen, pprof string
	hosts         []string
	user          string      // the header that names who acts
	named         *pflag.Flag // of user
	demo          bool
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
	registerHosts(fs, &f.hosts)
	fs.StringVar(&f.user, "user-header", "", "header by which a proxy on this machine names who acts in the console, such as "+
		"X-Forwarded-User; who has none is refused")
	f.named = fs.Lookup("user-header")
	fs.BoolVar(&f.demo, "demo", false, "show a shop that does not exist, in a store of its own")
	fs.StringVar(&f.pprof, "pprof", "", "loopback address for profiles of this program (default $NIXIE_PPROF, else none)")
}

func (f *serveFlags) read(g *globals) error {
	if f.demo && f.store != "" {
		return usagef("--demo has a store of its own: leave --store or --demo out")
	}
	if f.named.Changed { // also if it is empty: it was meant to keep others out
		if _, err := serve.ByHeader(f.user); err != nil {
			return usagef("--user-header: %w", err)
		}
	}
	return g.format(asTable, asWide, asJSON, asJSONL)
}

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
		Hosts:   config.Hosts(f.hosts, f.Env),
		Metrics: told.Metrics(), Version: versions(), Clock: f.Now, Log: log,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	answer := func(st store.Store, banner string) error {
		defer tell()
		if err := told.Gauges(func(ctx context.Context) (nixie.Overview, error) { return app.Overview(ctx, st) }); err != nil {
			return err
		}
		server.Use(st)
		if err := f.mount(server, st, banner); err != nil {
			return err
		}
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
	}
	if !f.demo {
		return f.withStore(app.Options{Owner: f.owner(), Observer: told.Observer()}, func(st store.Store) error { return answer(st, "") })
	}
	demo, err := app.NewDemo(ctx, f.Now, told.Observer())
	if err != nil {
		return err
	}
	server.Go(func(ctx context.Context) {
		if err := demo.Run(ctx); err != nil {
			f.say("nixie: the traffic of the demo ended: %v", err)
		}
	})
	return errors.Join(answer(demo.Store, demoBanner), demo.Close())
}

// demoBanner is on every page of a demo.
const demoBanner = "This is a demo: a shop that does not exist, in a store that is removed when the program ends."

// mount adds the console of a store to a server.
func (f *serveFlags) mount(server *serve.Server, st store.Store, banner string) error {
	o, err := office.New(office.Config{Store: st, Actor: config.Actor(f.Env), Clock: f.Now})
	if err != nil {
		return err
	}
	mask, err := app.NewMask(config.MaskPatterns(nil, f.Env), config.Inherited())
	if err != nil {
		return err
	}
	opts := console.Options{Banner: banner, Hosts: config.Hosts(f.hosts, f.Env), Mask: mask, Clock: f.Now, Run: server.Go}
	if f.user != "" {
		if opts.Identity, err = serve.ByHeader(f.user); err != nil {
			return err
		}
	}
	server.Mount(console.Handler(o, opts))
	return nil
}
