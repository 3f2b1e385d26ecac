package loop

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// Score tells how good an output is.
type Score struct {
	Value  float64 `json:"value"` // 0 to 1
	Passed bool    `json:"passed"`
	Reason string  `json:"reason,omitempty"`
}

// Evaluator scores an output. Any function of this form is one. It finds what was done for the
// output with [SessionOf].
type Evaluator[Out, Expected any] func(ctx context.Context, output Out, expected Expected) (Score, error)

// scored is the score of a check that holds or does not.
func scored(holds bool, otherwise string, args ...any) (Score, error) {
	if holds {
		return Score{Value: 1, Passed: true}, nil
	}
	return Score{Reason: fmt.Sprintf(otherwise, args...)}, nil
}

// ExactMatch passes outputs that are equal to what is expected.
func ExactMatch[T any]() Evaluator[T, T] {
	return func(_ context.Context, output, expected T) (Score, error) {
		return scored(reflect.DeepEqual(output, expected), "%v is not %v", output, expected)
	}
}

// Contains passes texts that have the expected one in them.
func Contains() Evaluator[string, string] {
	return func(_ context.Context, output, expected string) (Score, error) {
		return scored(strings.Contains(output, expected), "%q is not in the output", expected)
	}
}

// AllOf passes what all evaluators pass. Its value is the mean of theirs.
func AllOf[Out, Expected any](evaluators ...Evaluator[Out, Expected]) Evaluator[Out, Expected] {
	return joined(evaluators, func(all []Score) (s Score) {
		s.Passed = !slices.ContainsFunc(all, func(one Score) bool { return !one.Passed })
		for _, one := range all {
			s.Value += one.Value / float64(len(all))
		}
		s.Value = min(s.Value, 1) // of parts that were rounded
		return s
	})
}

// AnyOf passes what at least one of the evaluators passes. Its value is the highest of theirs.
func AnyOf[Out, Expected any](evaluators ...Evaluator[Out, Expected]) Evaluator[Out, Expected] {
	return joined(evaluators, func(all []Score) (s Score) {
		for _, one := range all {
			s.Value, s.Passed = max(s.Value, one.Value), s.Passed || one.Passed
		}
		return s
	})
}

func joined[Out, Expected any](evaluators []Evaluator[Out, Expected], join func([]Score) Score) Evaluator[Out, Expected] {
	return func(ctx context.Context, output Out, expected Expected) (Score, error) {
		if len(evaluators) == 0 {
			return Score{}, nixie.Errorf(nixie.CodeInvalid, "there is nothing to join: give at least one evaluator")
		}
		all := make([]Score, len(evaluators))
		var reasons []string
		for i, evaluate := range evaluators {
			var err error
			if all[i], err = evaluate(ctx, output, expected); err != nil {
				return Score{}, err
			}
			if all[i].Reason != "" {
				reasons = append(reasons, all[i].Reason)
			}
		}
		s := join(all)
		s.Reason = strings.Join(reasons, "; ")
		return s, nil
	}
}

// Judge asks a judge, such as a model, how well an output meets a criterion. It passes values of at
// least pass.
func Judge[Out, Expected any](criterion string, pass float64,
	ask func(ctx context.Context, criterion string, output Out, expected Expected) (value float64, reason string, err error),
) Evaluator[Out, Expected] {
	return func(ctx context.Context, output Out, expected Expected) (Score, error) {
		value, reason, err := ask(ctx, criterion, output, expected)
		return Score{value, value >= pass, reason}, err
	}
}

// Session records what was done for one output. It is safe for concurrent use; a nil session
// records nothing.
type Session struct {
	mu     sync.Mutex
	tools  []string
	tokens int
	limit  int    // of tokens; 0 is none
	end    func() // called over the limit
}

type sessionKey struct{}

// SessionOf returns the session of a running attempt, and nil outside of one.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// Call records that a tool was called.
func (s *Session) Call(tool string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = append(s.tools, tool)
}

// Spend records that tokens were used. Over the budget of the request the context of the attempt
// ends.
func (s *Session) Spend(tokens int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.tokens += tokens
	s.mu.Unlock()
	if s.over() {
		s.end()
	}
}

// over reports whether more was used than the request allows.
func (s *Session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit > 0 && s.tokens > s.limit
}

// Tools returns the tools that were called, in their order.
func (s *Session) Tools() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tools)
}

// Tokens returns how many tokens were used.
func (s *Session) Tokens() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

// ToolCalled passes outputs for which the tool was called.
func ToolCalled[Out, Expected any](tool string) Evaluator[Out, Expected] {
	return func(ctx context.Context, _ Out, _ Expected) (Score, error) {
		return scored(slices.Contains(SessionOf(ctx).Tools(), tool), "%s was not called", tool)
	}
}

// ToolNotCalled passes outputs for which the tool was not called.
func ToolNotCalled[Out, Expected any](tool string) Evaluator[Out, Expected] {
	return func(ctx context.Context, _ Out, _ Expected) (Score, error) {
		return scored(!slices.Contains(SessionOf(ctx).Tools(), tool), "%s was called", tool)
	}
}

// TokensAtMost passes outputs for which at most n tokens were used.
func TokensAtMost[Out, Expected any](n int) Evaluator[Out, Expected] {
	return func(ctx context.Context, _ Out, _ Expected) (Score, error) {
		used := SessionOf(ctx).Tokens()
		return scored(used <= n, "%d tokens were used, at most %d are allowed", used, n)
	}
}
