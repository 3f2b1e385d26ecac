package main

import "testing"

// The test runs the measurement with few items.
func TestMeasure(t *testing.T) {
	j := job{files: 300, items: 3, parallel: 2}
	if _, err := j.measure(); err != nil {
		t.Fatal(err)
	}
}
