package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/workflow"
)

// agentVariable names the command of claude steps in files that name none.
const agentVariable = "NIXIE_AGENT"

// planView is the JSON of map validate.
type planView struct {
	File  string `json:"file"`
	Job   string `json:"job"` // empty: the flags name it
	Mode  string `json:"mode"`
	Items string `json:"items"` // the file with the items; empty: a plain list of steps
	Plan  string `json:"plan"`
}

// fieldView is the JSON of map validate --fields.
type fieldView struct {
	Block string `json:"block"`
	Field string `json:"field"`
	Does  string `json:"does"` // or "refused: " and why
	Test  string `json:"test"` // that fails if the field is ignored; empty: it is refused
}

func newMapValidate(g *globals) *cobra.Command {
	var fields bool
	cmd := g.command(g.described("map validate", cobra.MaximumNArgs(1)), func(_ context.Context, args []string) error {
		switch {
		case fields && len(args) > 0:
			return usagef("--fields is about all files: leave %s out", args[0])
		case fields:
			return listed(g, "", []column[fieldView]{
				{name: "block"}, {name: "field"}, {name: "does", kind: prose}, {name: "test", show: asWide},
			})(fieldViews(), nil)
		case len(args) == 0:
			return usagef("no file: nixie map validate FILE.yaml, or --fields for the language")
		}
		return g.validateWorkflow(args[0])
	})
	cmd.Flags().BoolVar(&fields, "fields", false, "list the fields of the language: what each does, or why it is refused")
	return cmd
}

func fieldViews() (views []fieldView) {
	for _, f := range workflow.Fields() {
		v := fieldView{f.In, f.Name, f.Does, f.Test()}
		if !f.Works() {
			v.Does = "refused: " + f.Refused
		}
		views = append(views, v)
	}
	return views
}

// validateWorkflow prints the plan of a file, or a line for each thing that is wrong with it.
func (g *globals) validateWorkflow(path string) error {
	source, err := readWorkflowFile(path)
	if err != nil {
		return err
	}
	file, err := workflow.Parse(path, source, g.Env(agentVariable))
	var wrong *workflow.Error
	if errors.As(err, &wrong) {
		fmt.Fprintln(g.Err, escape(wrong.Error()))
		return exit(ExitUsage)
	}
	if err != nil {
		return err
	}
	view := planView{File: path, Job: file.Job, Mode: string(file.Mode), Plan: file.Plan()}
	if file.Map != nil {
		view.Items = file.Map.Input
	}
	return g.object(view, func(w io.Writer) { fmt.Fprint(w, escape(view.Plan)) })
}

// readWorkflowFile reads a workflow file, and not much more than it may have.
func readWorkflowFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "workflow file: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(file, workflow.MaxSize+1))
}
