package loop_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie/loop"
)

// A dataset of JSON lines is run through a function, and each output is scored.
func ExampleEvalLoop() {
	set, err := loop.ReadDataset[string, string](strings.NewReader(`
{"id": "greeting", "input": "hello", "expected": "HELLO"}
{"id": "number", "input": "seven", "expected": "7"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	e := loop.EvalLoop[string, string, string]{
		Run:      func(_ context.Context, input string) (string, error) { return strings.ToUpper(input), nil },
		Evaluate: loop.AnyOf(loop.ExactMatch[string](), loop.Contains()),
	}
	report, err := e.All(context.Background(), "upper case", set)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Total, "samples, pass rate", report.PassRate)
	for _, f := range report.Failed {
		fmt.Println(f.SampleID+":", f.Score.Reason)
	}
	// Output:
	// 2 samples, pass rate 0.5
	// number: SEVEN is not 7; "7" is not in the output
}
