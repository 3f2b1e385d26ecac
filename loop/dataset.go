package loop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/nixie-go/nixie"
)

// MaxSampleLine is the most bytes of a line of a dataset.
const MaxSampleLine = nixie.MaxBody

// Sample is an input with the output that is expected for it.
type Sample[In, Expected any] struct {
	ID       string   `json:"id"`
	Input    In       `json:"input"`
	Expected Expected `json:"expected"`
}

// Dataset is a list of samples with different IDs.
type Dataset[In, Expected any] []Sample[In, Expected]

// ReadDataset reads samples from JSON lines. Empty lines do not count. Errors have
// [nixie.CodeInvalid] and name the line.
func ReadDataset[In, Expected any](r io.Reader) (Dataset[In, Expected], error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxSampleLine)
	var all Dataset[In, Expected]
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var s Sample[In, Expected]
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		err := strict.Decode(&s)
		if err == nil && strict.More() {
			err = errors.New("there is more after the sample")
		}
		switch {
		case err != nil:
			return nil, nixie.Errorf(nixie.CodeInvalid, "line %d of the dataset is no sample: %w", n, err)
		case s.ID == "":
			return nil, nixie.Errorf(nixie.CodeInvalid, "line %d of the dataset has no id: give one", n)
		case seen[s.ID] > 0:
			return nil, nixie.Errorf(nixie.CodeInvalid, "line %d of the dataset has the id %.40q of line %d: give another",
				n, s.ID, seen[s.ID])
		}
		seen[s.ID] = n
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "line %d of the dataset cannot be read: %w", n+1, err)
	}
	return all, nil
}
