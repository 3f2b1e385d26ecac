package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

const (
	rulesFile     = "../deploy/prometheus/nixie.rules.yml"
	dashboardFile = "../deploy/grafana/nixie.json"
)

// rule is an alert as Prometheus reads it.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	data, err := os.ReadFile(rulesFile)
	if err == nil {
		err = yaml.UnmarshalWithOptions(data, &file, yaml.Strict())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func alertNames(t *testing.T) (names []string) {
	t.Helper()
	for _, r := range rules(t) {
		names = append(names, r.Alert)
	}
	return names
}

// selector matches a metric with its labels in an expression.
var selector = regexp.MustCompile(`\bnixie_(\w+)(?:\{([^}]*)\})?`)

// checkExpr fails for metrics and labels in an expression that do not exist, and returns the
// metrics.
func checkExpr(t *testing.T, where, expr string) (names []string) {
	t.Helper()
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		name := found[1]
		at := slices.IndexFunc(metrics, func(m definition) bool {
			_, part, _ := strings.Cut(name, m.name+"_")
			return m.name == name || m.kind == histogram && slices.Contains([]string{"bucket", "sum", "count"}, part)
		})
		if at < 0 {
			t.Errorf("%s: there is no %s%s", where, prefix, name)
			continue
		}
		names = append(names, metrics[at].name)
		for _, matcher := range strings.Split(found[2], ",") {
			if label := regexp.MustCompile(`^\w*`).FindString(matcher); label != "" && !slices.Contains(metrics[at].labels, label) {
				t.Errorf("%s: %s%s has no label %s", where, prefix, name, label)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	return names
}

// The alerts and the dashboard know no metric and no label that does not exist, and the dashboard
// shows all of them.
func TestRulesAndDashboardKnowTheNames(t *testing.T) {
	for _, r := range rules(t) {
		checkExpr(t, r.Alert, r.Expr)
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
			t.Errorf("%s has no severity or no summary", r.Alert)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	data, err := os.ReadFile(dashboardFile)
	if err == nil {
		err = json.Unmarshal(data, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			shown = append(shown, checkExpr(t, p.Title, target.Expr)...)
		}
	}
	for _, m := range metrics {
		if !slices.Contains(shown, m.name) {
			t.Errorf("the dashboard does not show %s", m.name)
		}
	}
}

// exposition returns what a scrape of all metrics reads.
func exposition(t *testing.T) []byte {
	t.Helper()
	m, registry, now := newMetrics(t)
	story(t, m.Observer())
	if err := m.Gauges(func(context.Context) (Overview, error) {
		return Overview{At: *now, Queues: []QueueNumbers{{Name: "billing", Letters: map[nixie.Status]int64{nixie.StatusOpen: 1}}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// A scrape has every metric and can be read again.
func TestExpositionCanBeRead(t *testing.T) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(exposition(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		if families[prefix+m.name] == nil {
			t.Errorf("a scrape has no %s%s", prefix, m.name)
		}
	}
	if len(families) != len(metrics) {
		t.Errorf("a scrape has %d metrics of %d", len(families), len(metrics))
	}
}

// Prometheus accepts the alerts, and finds nothing to say about the metrics.
func TestPromtool(t *testing.T) {
	promtool := testservers.Program(t, "promtool")
	folder := filepath.Dir(rulesFile)
	for _, args := range [][]string{
		{"check", "rules", "nixie.rules.yml"}, {"test", "rules", "nixie.rules.test.yml"}, {"check", "metrics"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), promtool, args...)
			cmd.Dir, cmd.Stdin = folder, bytes.NewReader(exposition(t))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
