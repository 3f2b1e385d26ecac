package cli

import "testing"

func TestAdviceBeginsAsTheProgramWasCalled(t *testing.T) {
	for called, want := range map[string]string{"": "nixie", "bin/nixie": "bin/nixie"} {
		g := globals{Streams: Streams{Name: called}, store: "sqlite://s.db"}
		if got := g.typed("dlq", "list"); got != want+" dlq list --store sqlite://s.db" {
			t.Errorf("called %s: %s", called, got)
		}
	}
}
