package arch

// Check reports every violation in t, in the order of the checks and then of
// the files.
func Check(t *Tree) []Violation {
	var all []Violation
	for _, check := range []func(*Tree) []Violation{
		checkPlan, checkFloors, checkSleeps, checkGoroutines, checkVariables, checkSizes, checkNames, checkTexts, checkWidths,
	} {
		all = append(all, check(t)...)
	}
	return all
}
