package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// tellOrders prints the state and the failures of the orders that match.
func tellOrders(ctx context.Context, out io.Writer, clerk *office.Office, choice nixie.Filter) error {
	var keys []string
	for r, err := range clerk.AllMessages(ctx, choice) {
		if err != nil {
			return err
		}
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		o, err := clerk.Message(ctx, key) // with its history
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s: %s, done %v\n", o.Key, o.State, o.Steps)
		for _, f := range o.History {
			fmt.Fprintf(out, "  generation %d attempt %d: %s (%s, %s), then %s\n", f.Generation, f.Attempt, f.Text, f.Reason, f.Class,
				f.Decision)
		}
	}
	return nil
}

// tellLetters prints every letter, and the number that wait for an operator.
func tellLetters(ctx context.Context, out io.Writer, clerk *office.Office) error {
	waiting, err := clerk.Analyze(ctx, office.Unresolved(nixie.Filter{}), store.ScanRecent)
	if err != nil {
		return err
	}
	var letters []nixie.Letter
	for l, err := range clerk.AllLetters(ctx, nixie.Filter{}, true) {
		if err != nil {
			return err
		}
		letters = append(letters, l)
	}
	slices.SortFunc(letters, func(a, b nixie.Letter) int { return strings.Compare(a.Message.Key, b.Message.Key) })
	fmt.Fprintf(out, "\nThe office: %d letters wait for an operator\n", waiting.Letters)
	for _, l := range letters {
		fmt.Fprintf(out, "  %s is %s: %s\n    its bytes: %s\n", l.Message.Key, l.Status, l.Signature, l.Message.Body)
	}
	return nil
}

// redrive sends letters back to their queue. It previews the operation, freezes the selection, and
// runs it. It returns the number of letters that went.
func redrive(ctx context.Context, out io.Writer, clerk *office.Office, choice nixie.Filter, reason string) (int64, error) {
	work := &office.OperationRequest{Event: store.OnRedrive, Filter: choice, Text: filter.Text(choice), Reason: reason, Rate: 100}
	plan, err := clerk.Preview(ctx, work)
	if err != nil {
		return 0, err
	}
	for _, g := range plan.Groups {
		fmt.Fprintf(out, "  would go: %d × %s\n", g.Count, g.Signature)
	}
	operation, err := clerk.Begin(ctx, work)
	if err != nil {
		return 0, err
	}
	done, err := clerk.Run(ctx, operation.Operation, work)
	return done.Done(), err
}

// giveUp discards the remaining letters. The reason stays with each letter.
func giveUp(ctx context.Context, clerk *office.Office, reason string) error {
	work := &office.OperationRequest{Event: store.OnDiscard, Reason: reason}
	operation, err := clerk.Begin(ctx, work)
	if err != nil {
		return err
	}
	_, err = clerk.Run(ctx, operation.Operation, work)
	return err
}
