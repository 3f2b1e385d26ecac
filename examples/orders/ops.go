package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
)

// ops are the pages of the shop for its operators: the console of the office, below /ops/ of a
// server that could have other routes. The console knows no logins: a shop with a wall around it
// lets only operators through.
func ops(clerk *office.Office, background func(func(context.Context))) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/ops/", console.Handler(clerk, console.Options{Prefix: "/ops/", Title: "Orders", Run: background}))
	return mux
}

// serve shows the pages until ctx ends. It waits for the operations that run then.
func serve(ctx context.Context, out io.Writer, clerk *office.Office, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	server := &http.Server{
		Handler:           ops(clerk, func(do func(context.Context)) { running.Go(func() { do(ctx) }) }),
		ReadHeaderTimeout: 5 * time.Second,
	}
	fmt.Fprintf(out, "\nThe office is at http://%s/ops/\n", listener.Addr())
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
