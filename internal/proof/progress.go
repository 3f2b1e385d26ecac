package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Progress counts what deep runs have done of a proof so far.
type Progress struct {
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Want       int     `json:"want"`
	Count      int     `json:"count"`
	Seed       uint64  `json:"seed"`    // the last one that is finished
	Seconds    float64 `json:"seconds"` // that the seeds took
	Violations int     `json:"violations"`
	Build      string  `json:"build"`  // hash of the test binary
	Commit     string  `json:"commit"` // that was run; "A to B" if there were several
	Date       string  `json:"date"`
}

// Full reports whether the count is reached without a violation.
func (g Progress) Full() bool { return g.Want > 0 && g.Count >= g.Want && g.Violations == 0 }

// Load reads the progress of a proof, which is empty before its first seed.
func Load(folder, name string) (Progress, error) {
	done := Progress{Name: name}
	data, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err == nil {
		err = json.Unmarshal(data, &done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("progress of %s: %w", name, err)
	}
	return done, nil
}

// Save replaces the file whole, so that a run that is killed leaves one that can be read.
func (g Progress) Save(folder string) error {
	data, err := json.Marshal(g)
	path := filepath.Join(folder, g.Name+".json")
	if err := errors.Join(err, os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("progress of %s: %w", g.Name, err)
	}
	return nil
}
