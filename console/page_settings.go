package console

import (
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// ownersShown limits the processes that the page of settings lists.
const ownersShown = 50

func settingsPage() page {
	return page{path: "settings", title: "Settings", menu: "settings", file: "settings", show: (*console).showSettings}
}

// settingsData is the program, its store, and what protects it.
type settingsData struct {
	Build  build
	Health *office.HealthView // nil: the store does not report
	Owners int                // that are not among those of Health
	Queues []office.QueueView // that keep things for another time than the default
	More   int                // such queues that are not among them
	Kept   office.QueueView   // what queues keep that have no settings
	Masked bool
	Logins bool // requests have names
	Prefix string
	Hosts  []string
	Schema bool // the schema of the store is the newest that this program knows
}

// build names the Nixie in this program.
type build struct{ Version, Revision, Go, Platform string }

// readBuild reads what the linker noted. A program that uses the package has Nixie among its
// modules.
func readBuild() build {
	const module = "github.com/nixie-go/nixie"
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			b.Version = m.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && info.Main.Path == module {
			b.Revision = s.Value
		}
	}
	return b
}

func (c *console) showSettings(r *http.Request) (answer, error) {
	ctx := r.Context()
	_, none := c.Mask.(noMask)
	d := settingsData{Build: readBuild(), Masked: !none, Logins: c.Identity != nil, Prefix: c.Prefix, Hosts: c.Hosts}
	health, err := c.office.Inspect(ctx)
	switch nixie.CodeOf(err) {
	case "":
		d.Health, d.Schema = &health, health.Schema == health.KnownSchema
		d.Owners = max(0, len(health.Owners)-ownersShown)
		health.Owners = health.Owners[:len(health.Owners)-d.Owners]
	case nixie.CodeUnavailable:
		if health.Store != "" {
			return answer{}, err
		}
	default:
		return answer{}, err
	}
	queues, err := c.office.AllSettings(ctx)
	if err != nil {
		return answer{}, err
	}
	d.Kept = c.office.ViewQueue(&office.QueueInfo{})
	for i := range queues {
		s := queues[i].Settings
		switch {
		case s.Retention == 0 && s.LetterRetention == 0 && s.AuditRetention == 0:
		case len(d.Queues) == queuesListed:
			d.More++
		default:
			d.Queues = append(d.Queues, c.office.ViewQueue(&queues[i]))
		}
	}
	return answer{Data: d}, nil
}
