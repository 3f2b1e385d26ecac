package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// keeping sets retentions that end within a run.
func keeping(s nixie.QueueSettings) nixie.QueueSettings {
	s.Retention, s.LetterRetention, s.AuditRetention = time.Minute, time.Minute, 2*time.Minute
	return s
}

func (m *machine) prune(r *rapid.T) {
	p := m.process(r)
	for _, dry := range []bool{true, false} {
		sut, err := p.sut.Prune(m.ctx, store.Pruning{DryRun: dry})
		ref, want := p.ref.Prune(m.ctx, store.Pruning{DryRun: dry})
		m.sameCode("prune", err, want)
		m.same(fmt.Sprintf("pruned, dry run %v", dry), sut, ref)
	}
}

func seeNotes(notes []nixie.Note) string {
	seen := ""
	for _, n := range notes {
		seen += fmt.Sprint(" note of ", n.By, at(n.At), n.Text)
	}
	return seen
}
