package lease_test

import (
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

func TestIntact(t *testing.T) {
	body := []byte("body")
	d := nixie.Delivery{Message: nixie.Message{Body: body}}
	if lease.Intact(&d) {
		t.Error("a body without its hash is intact")
	}
	d.Hash = nixie.HashBody(body)
	if first, again := lease.Intact(&d), lease.Intact(&d); !first || !again {
		t.Error("a body with its hash is not intact")
	}
	other := nixie.Delivery{Message: nixie.Message{Body: []byte("bodi"), Hash: d.Hash}}
	if lease.Intact(&other) {
		t.Error("another body is intact")
	}
}
