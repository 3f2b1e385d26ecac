package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
)

// answer is the function that the tests evaluate.
func answer(ctx context.Context, question string) (string, error) {
	loop.SessionOf(ctx).Call("search")
	loop.SessionOf(ctx).Spend(len(question))
	switch question {
	case "capital of France?":
		return "It is Paris.", nil
	case "2+2?":
		return "five", nil
	case "panic":
		panic("no such question")
	}
	return "", errors.New("nothing to say")
}

// The report of a dataset, with a failure, an error and a panic in it, as it was once agreed.
func TestGoldenReport(t *testing.T) {
	file := must(os.Open("testdata/samples.jsonl"))(t)
	defer func() { _ = file.Close() }()
	set := must(loop.ReadDataset[string, string](file))(t)
	now := time.Unix(0, 0)
	e := loop.EvalLoop[string, string, string]{Run: answer, Evaluate: loop.Contains(), Clock: func() time.Time {
		now = now.Add(250 * time.Millisecond)
		return now
	}}
	report := must(e.All(ctx, "first", set))(t)
	got := must(json.MarshalIndent(report, "", "  "))(t)
	want := must(os.ReadFile("testdata/report.json"))(t)
	if string(got)+"\n" != string(want) {
		t.Errorf("the report is\n%s", got)
	}
}

// The error of a dataset names its line.
func TestBadDatasets(t *testing.T) {
	const good = `{"id":"a","input":"1","expected":"2"}` + "\n"
	for text, want := range map[string]string{
		good + "{":                          "line 2",
		"\n\n" + `{"id":"a","input":1}`:     "line 3",
		good + `{"input":"1"}`:              "line 2 of the dataset has no id",
		good + "\n" + good:                  "line 3 of the dataset has the id",
		`{"id":"a","inptu":"1"}`:            "line 1",
		good + good[:len(good)-1] + "{}":    "line 2",
		strings.Repeat("x", 17<<20) + good:  "line 1",
		good + strings.Repeat(" ", 17<<20):  "line 2",
		`[{"id":"a"}]`:                      "line 1",
		good + `{"id":"b","input":"\ud800"`: "line 2",
	} {
		_, err := loop.ReadDataset[string, string](strings.NewReader(text))
		if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %.200v, want %s", text, err, want)
		}
	}
	if set, err := loop.ReadDataset[string, string](strings.NewReader("")); err != nil || len(set) != 0 {
		t.Errorf("an empty dataset: %v, %v", set, err)
	}
}

func TestEvaluators(t *testing.T) {
	type evaluator = loop.Evaluator[string, string]
	half := func(context.Context, string, string) (loop.Score, error) {
		return loop.Score{Value: 0.5, Reason: "half"}, nil
	}
	broken := func(context.Context, string, string) (loop.Score, error) { return loop.Score{}, errors.New("no judge") }
	judge := loop.Judge("short", 0.7, func(_ context.Context, _, output, _ string) (float64, string, error) {
		return 1 / float64(len(output)), "length", nil
	})
	exact, contains := loop.ExactMatch[string](), loop.Contains()
	for name, c := range map[string]struct {
		evaluate evaluator
		output   string
		want     string // value, passed, reason and error
	}{
		"exact":         {exact, "yes", "1 true  <nil>"},
		"not exact":     {exact, "yes!", "0 false yes! is not yes <nil>"},
		"contains":      {contains, "oh yes", "1 true  <nil>"},
		"contains none": {contains, "no", `0 false "yes" is not in the output <nil>`},
		"all":           {loop.AllOf(exact, contains), "yes", "1 true  <nil>"},
		"not all":       {loop.AllOf(exact, contains, half), "oh yes", "0.5 false oh yes is not yes; half <nil>"},
		"any":           {loop.AnyOf(exact, half, contains), "oh yes", "1 true oh yes is not yes; half <nil>"},
		"not any":       {loop.AnyOf(exact, half), "no", "0.5 false no is not yes; half <nil>"},
		"all of none":   {loop.AllOf[string, string](), "yes", "0 false  there is nothing to join: give at least one evaluator"},
		"broken":        {loop.AnyOf(exact, broken), "yes", "0 false  no judge"},
		"judge":         {judge, "a", "1 true length <nil>"},
		"judged down":   {judge, "ab", "0.5 false length <nil>"},
	} {
		s, err := c.evaluate(ctx, c.output, "yes")
		if got := fmt.Sprint(s.Value, s.Passed, " ", s.Reason, " ", err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Evaluators see what was done for an output, and for no other one.
func TestSessions(t *testing.T) {
	e := loop.EvalLoop[string, string, string]{Run: answer, Evaluate: loop.AllOf(
		loop.ToolCalled[string, string]("search"), loop.ToolNotCalled[string, string]("delete"), loop.TokensAtMost[string, string](4))}
	for question, want := range map[string]string{"2+2?": "", "capital of France?": "18 tokens were used, at most 4 are allowed"} {
		r := must(e.Execute(ctx, loop.EvalRequest[string, string]{Sample: loop.Sample[string, string]{ID: "a", Input: question}}))(t)
		if r.Score.Reason != want || r.Score.Passed != (want == "") {
			t.Errorf("%s: %+v, want %q", question, r, want)
		}
	}
	if s := loop.SessionOf(ctx); s != nil || s.Tokens() != 0 || len(s.Tools()) != 0 {
		t.Error("there is a session outside of an attempt")
	}
}

// A lost connection is an error of the attempt, and all else one of the sample.
func TestErrorsOfSamples(t *testing.T) {
	value := 1.0
	var failure error
	e := loop.EvalLoop[string, string, string]{
		Run:      func(context.Context, string) (string, error) { return "out", failure },
		Evaluate: func(context.Context, string, string) (loop.Score, error) { return loop.Score{Value: value}, nil },
	}
	for _, c := range []struct {
		err       error
		value     float64
		text      string
		transient bool
	}{
		{nil, 1, "", false},
		{nil, 1.1, "score is 1.1: an evaluator has to return one from 0 to 1", false},
		{nil, -0.1, "score is -0.1: an evaluator has to return one from 0 to 1", false},
		{nil, math.NaN(), "score is NaN: an evaluator has to return one from 0 to 1", false},
		{errors.New("bad sample"), 1, "bad sample", false},
		{fmt.Errorf("send: %w", loop.ErrConnection), 1, "", true},
		{nixie.Transient(errors.New("later")), 1, "", true},
	} {
		failure, value = c.err, c.value
		r, err := e.Execute(ctx, loop.EvalRequest[string, string]{Sample: loop.Sample[string, string]{ID: "a"}, Experiment: "x"})
		if r.Error != c.text || (err != nil) != c.transient || r.SampleID != "a" || r.Experiment != "x" {
			t.Errorf("%v with score %v: %+v, %v", c.err, c.value, r, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.All(ended, "x", loop.Dataset[string, string]{{ID: "a"}}); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("with a context that has ended: %v", err)
	}
	if r := loop.Report(nil); r.Total != 0 || r.PassRate != 0 || r.MeanLatencyMS != 0 {
		t.Errorf("the report of nothing is %+v", r)
	}
}
