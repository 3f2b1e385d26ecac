package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// Bounds of the targets.
const (
	mostMedian   = 100 // ms
	mostTail     = 300 // ms
	mostPage     = 60  // KiB, compressed
	mostAssets   = 120 // KiB, compressed, with a page
	mostToCause  = 5   // s
	mostWatching = 2   // % of a core
	watchers     = 10
)

// sample has the measurements of a page.
type sample struct {
	path         string
	median, tail float64 // ms
	bytes        int     // compressed
	errors       int     // answers that were none
}

// measure asks for each page again and again, then lets some watch the first.
func (j *job) measure(ctx context.Context, kind string, st store.Store) error {
	clerk, err := office.New(office.Config{Store: st, Actor: "bench"})
	if err != nil {
		return err
	}
	handler := console.Handler(clerk, console.Options{Title: "Bench"})
	var samples []sample
	for _, path := range j.paths(handler) {
		samples = append(samples, j.page(ctx, handler, path))
	}
	print(samples)
	add := func(name, unit string, most float64, of func(sample) float64) {
		worst := slices.MaxFunc(samples, func(a, b sample) int { return int(1000 * (of(a) - of(b))) })
		about := "the worst is " + browser.Kind(worst.path)
		j.targets = append(j.targets, target{"console-" + kind + "-" + name, of(worst), most, unit, about})
	}
	add("errors", "answers", 0, func(s sample) float64 { return float64(s.errors) })
	add("median", "ms", mostMedian, func(s sample) float64 { return s.median })
	add("p99", "ms", mostTail, func(s sample) float64 { return s.tail })
	return errors.Join(j.sizes(kind, handler, samples), j.inBrowser(ctx, kind, handler, samples), j.watched(ctx, kind, handler, st))
}

// paths are one address of each kind of page that links lead to, and some with filters.
func (j *job) paths(handler http.Handler) (list []string) {
	for _, found := range browser.Crawl(handler, 1) {
		if found.Page {
			list = append(list, found.Path)
		}
	}
	for _, filter := range []string{"queue:queue-07", "reason:timeout", "fingerprint:" + fingerprint(7), "age:<1h"} {
		for _, page := range []string{"/letters", "/groups"} {
			list = append(list, page+"?filter="+url.QueryEscape(filter))
		}
	}
	for _, stage := range append(office.Stages(), "") {
		for _, filter := range []string{"", "queue:queue-00", "queue:queue-07"} {
			list = append(list, "/messages?stage="+string(stage)+"&filter="+filter)
		}
	}
	return append(list, "/redrive?filter=fingerprint:"+fingerprint(7), "/letters?filter=order-77")
}

// page measures a page.
func (j *job) page(ctx context.Context, handler http.Handler, path string) sample {
	var times []float64
	s := sample{path: path}
	for i := range j.rounds + 1 {
		r, w := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil), httptest.NewRecorder()
		began := time.Now()
		handler.ServeHTTP(w, r)
		took := time.Since(began)
		if w.Code >= http.StatusBadRequest {
			s.errors++
		}
		if i == 0 { // the store reads it from the disk
			s.bytes = packed(w.Body.Bytes())
			continue
		}
		times = append(times, took.Seconds()*1000)
	}
	slices.Sort(times)
	s.median, s.tail = times[len(times)/2], times[len(times)*99/100]
	return s
}

// packed returns the bytes that a proxy would send.
func packed(data []byte) int {
	n := counter(0)
	z := gzip.NewWriter(&n)
	_, _ = z.Write(data) // a counter takes all
	_ = z.Close()
	return int(n)
}

type counter int

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

func print(samples []sample) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "median ms\tp99 ms\tKiB packed\t\tpage")
	for _, s := range samples {
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t\t%.90s\n", s.median, s.tail, float64(s.bytes)/1024, s.path)
	}
	_ = w.Flush() // to the terminal
}

// asset is the address of a file that pages load.
var asset = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// sizes compares the largest page, alone and with its assets.
func (j *job) sizes(kind string, handler http.Handler, samples []sample) error {
	page := slices.MaxFunc(samples, func(a, b sample) int { return a.bytes - b.bytes })
	all := page.bytes
	for _, found := range asset.FindAllStringSubmatch(get(handler, page.path), -1) {
		all += packed([]byte(get(handler, found[1])))
	}
	about := "the largest is " + browser.Kind(page.path)
	j.targets = append(j.targets,
		target{"console-" + kind + "-page", float64(page.bytes) / 1024, mostPage, "KiB", about},
		target{"console-" + kind + "-assets", float64(all) / 1024, mostAssets, "KiB", about + ", with all that it loads"})
	return nil
}

func get(handler http.Handler, path string) string {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)) //nolint:noctx // the console bounds its time
	return w.Body.String()
}

// inBrowser opens the pages in a browser, if there is one. It takes the time until a page names the
// causes, from the first page on, and adds up how far parts of pages moved.
func (j *job) inBrowser(ctx context.Context, kind string, handler http.Handler, samples []sample) (err error) {
	program := ""
	for _, s := range testservers.Find(ctx, testservers.This()) {
		if s.Name == testservers.Chromium {
			fmt.Println(s)
			program = s.File
		}
	}
	if program == "" {
		return nil
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	b := browser.Start(ctx, program, func(what ...any) { panic(fmt.Sprint(what...)) })
	defer b.Close()
	tab := b.Open(server.URL, browser.Look{})
	began := time.Now()
	tab.Go("/", 0)
	tab.Go("/groups", 0)
	if !strings.Contains(browser.Ask[string](tab, "document.querySelector('main').innerText"), ": no answer") {
		return errors.New("the page of groups names no cause")
	}
	j.targets = append(j.targets, target{"console-" + kind + "-cause", time.Since(began).Seconds(), mostToCause, "s",
		"from the first page to one that names the causes, in a browser"})
	moved := 0.0
	for _, s := range samples {
		tab.Go(s.path, 0)
		moved += browser.Ask[float64](tab, browser.Shift)
	}
	j.targets = append(j.targets, target{"console-" + kind + "-shift", moved, 0, "in all", "how far parts of pages move as they load"})
	return nil
}

// watched measures the processor time of those who watch the first page, while a letter comes each
// second, with that of the letters alone taken off.
func (j *job) watched(ctx context.Context, kind string, handler http.Handler, st store.Store) error {
	server := httptest.NewServer(handler)
	defer server.Close()
	alone, err := j.during(ctx, st, func(context.Context) {})
	if err != nil {
		return err
	}
	with, err := j.during(ctx, st, func(ctx context.Context) {
		var all sync.WaitGroup
		for i := range watchers {
			all.Go(func() { watch(ctx, server.URL, time.Duration(i)*300*time.Millisecond) })
		}
		all.Wait()
	})
	j.targets = append(j.targets, target{"console-" + kind + "-watchers", with - alone, mostWatching, "% of a core",
		fmt.Sprintf("%d watch the first page, and a letter comes each second", watchers)})
	return err
}

// during returns the processor time of this process in percent of a core, while do runs.
func (j *job) during(ctx context.Context, st store.Store, do func(context.Context)) (float64, error) {
	ctx, end := context.WithTimeout(ctx, j.length)
	defer end()
	var watching sync.WaitGroup
	began, at := contest.ProcessorTime(), time.Now()
	watching.Go(func() { do(ctx) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			l := j.letter(n, time.Now())
			l.Message.Key, l.DiedAt = "", time.Now()
			if _, errs := st.Adopt(ctx, []nixie.Letter{l}, "bench", ""); errs[0] != nil && ctx.Err() == nil {
				return 0, errs[0]
			}
		case <-ctx.Done():
			watching.Wait()
			return 100 * (contest.ProcessorTime() - began).Seconds() / time.Since(at).Seconds(), nil
		}
	}
}

// watch asks for a page again and again, as the script of the console does.
func watch(ctx context.Context, address string, after time.Duration) {
	const most = 3 * time.Second // between two questions
	version := "none"
	wait := time.NewTimer(after)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/", nil)
		if err != nil {
			return
		}
		r.Header.Set("Nixie-Live", version)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return // the time is over
		}
		if v := answer.Header.Get("Nixie-Live"); v != "" {
			version = v
		}
		_, _ = io.Copy(io.Discard, answer.Body) // likewise
		_ = answer.Body.Close()
		next, err := time.ParseDuration(answer.Header.Get("Nixie-Next") + "ms")
		if err != nil {
			next = most
		}
		wait.Reset(min(max(next, most/12), most))
	}
}
