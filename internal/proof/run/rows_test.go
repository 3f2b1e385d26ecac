package main

import (
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	r := newRows()
	for _, required := range requiredRows() {
		row := required.number
		if row == "R2" || row == "R9" {
			continue
		}
		r.note(event{Action: "pass", Package: modulePrefix + "p", Test: "TestStore/Part/" + row + "_Name"})
	}
	r.note(event{Action: "pass", Package: modulePrefix + "p", Test: "TestR2_Name"})
	r.note(event{Action: "run", Package: modulePrefix + "p", Test: "TestR9_Name"})
	r.note(event{Action: "pass", Package: modulePrefix + "p", Test: "TestXR9_Name"})
	r.note(event{Action: "pass", Package: modulePrefix + "p", Test: "TestR9_Name/part"})
	var out strings.Builder
	if err := r.print(&out); err == nil || !strings.HasSuffix(err.Error(), ": R9") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"R2 ok p TestR2_Name\n", "R9 MISSING\n", "R11 ok p TestStore/Part/R11_Name\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	r.note(event{Action: "pass", Package: modulePrefix + "p", Test: "TestR9_Name"})
	if err := r.print(&out); err != nil {
		t.Error(err)
	}
	for _, action := range []string{"fail", "skip"} {
		r.note(event{Action: action, Package: "p", Test: "TestR11_Other"})
		if err := r.print(&out); err == nil || !strings.HasSuffix(err.Error(), ": R11") {
			t.Errorf("%s: got %v", action, err)
		}
	}
}
