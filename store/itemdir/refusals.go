package itemdir

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// refusals refuses the calls that a folder of items does not support.
type refusals struct{}

func refuse(what string) error {
	return nixie.Errorf(nixie.CodeUnavailable,
		"a folder of items holds dead letters to look at, and cannot %s: take them into a store with nixie dlq import, and work there",
		what)
}

func refuseEach(n int, what string) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = refuse(what)
	}
	return errs
}

func (refusals) Enqueue(context.Context, ...nixie.Message) ([]nixie.Receipt, error) {
	return nil, refuse("take messages")
}

func (refusals) Claim(context.Context, string, nixie.Want) ([]*nixie.Delivery, error) {
	return nil, refuse("hand out messages")
}

func (refusals) Extend(_ context.Context, deliveries []*nixie.Delivery, _ time.Duration) []error {
	return refuseEach(len(deliveries), "lease messages")
}

func (refusals) Settle(_ context.Context, settlements []nixie.Settlement) []error {
	return refuseEach(len(settlements), "settle messages")
}

func (refusals) Amend(_ context.Context, ids []nixie.ID, _ store.Change) []error {
	return refuseEach(len(ids), "change messages")
}

func (refusals) Adopt(_ context.Context, letters []nixie.Letter, _, _ string) ([]nixie.Receipt, []error) {
	return make([]nixie.Receipt, len(letters)), refuseEach(len(letters), "take letters")
}

func (refusals) Resolve(_ context.Context, resolutions []store.Resolution) []error {
	return refuseEach(len(resolutions), "change letters")
}

func (refusals) Plan(context.Context, store.Operation, nixie.Filter, int) (store.Operation, error) {
	return store.Operation{}, refuse("redrive or discard letters")
}

func (refusals) Operations(context.Context, store.OperationQuery, store.Page) ([]store.Operation, string, error) {
	return nil, "", refuse("keep operations")
}

func (refusals) Audit(context.Context, store.AuditFilter, store.Page) ([]store.AuditEntry, string, error) {
	return nil, "", refuse("keep an audit")
}

func (refusals) Messages(context.Context, nixie.Filter, store.Page) ([]store.Record, string, error) {
	return nil, "", refuse("list messages")
}

func (refusals) Adjust(context.Context, string, string, string, func(*nixie.QueueSettings) error) (nixie.QueueSettings, error) {
	return nixie.QueueSettings{}, refuse("configure queues")
}

func (refusals) Purge(context.Context, string, nixie.Filter, int, string, string) (int, error) {
	return 0, refuse("purge queues")
}

func (refusals) Prune(context.Context, store.Pruning) (store.Pruned, error) {
	return store.Pruned{}, refuse("prune")
}
