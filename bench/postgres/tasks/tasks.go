// Package tasks has four tasks of a program that ships orders, each as a file by River and as one
// of the same name by Nixie: an order that is taken in by a transaction, a worker that retries,
// what died being run again, and a test of the handler. Both are run by the same test, and
// docs/coming-from/river.md counts their lines.
package tasks

import (
	"context"
	"errors"
)

// Ship ships an order.
type Ship func(ctx context.Context, order int) error

// ErrWrong is an error of Ship that another attempt would meet again.
var ErrWrong = errors.New("the order has no address")
