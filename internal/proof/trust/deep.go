package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// deepFile is what deep runs leave, below the repository.
const deepFile = "internal/proof/trust/deep.json"

// deepRun is how far deep runs came with each proof.
type deepRun struct{ Proofs []deepProof }

type deepProof struct {
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Want       int64   `json:"want"`
	Count      int64   `json:"count"`
	Violations int64   `json:"violations"`
	Seconds    float64 `json:"seconds"`
	Since      string  `json:"since"` // the first commit, if it is not the only one
	Commit     string  `json:"commit"`
	Date       string  `json:"date"`
}

// notRun stands where a deep run has nothing to say.
const notRun = "not run yet"

// readDeep reads them; where there is none nothing was run.
func readDeep(fsys fs.FS) (deepRun, error) {
	var run deepRun
	data, err := fs.ReadFile(fsys, deepFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return run, nil
	case err != nil:
		return run, err
	}
	if err := json.Unmarshal(data, &run.Proofs); err != nil {
		return run, fmt.Errorf("%s: %w: run make deep again", deepFile, err)
	}
	return run, nil
}

// of says how much the deep run did of some kinds of proof: "–" for kinds that do
// no more in it.
func (d *deepRun) of(kinds []string) string {
	var parts, missing []string
	for _, kind := range kinds {
		if !counted(kind) {
			continue
		}
		count, unit := int64(0), ""
		for _, p := range d.Proofs {
			if kindOfProof(p.Name) == kind {
				count, unit = count+p.Count, p.Unit
			}
		}
		if unit == "" {
			missing = append(missing, kind)
		} else {
			parts = append(parts, grouped(count)+" "+unit)
		}
	}
	switch {
	case len(parts)+len(missing) == 0:
		return "–"
	case len(parts) == 0:
		return notRun
	case len(missing) > 0:
		parts = append(parts, notRun+": "+strings.Join(missing, ", "))
	}
	return strings.Join(parts, ", ")
}

// grouped writes a number with commas.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
