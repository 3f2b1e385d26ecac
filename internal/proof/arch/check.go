package arch

// Check reports every violation in t, in the order of the checks and then of
// the files.
func Check(t *Tree) []Violation {
	var all []Violation
	for _, check := range []func(*Tree) []Violation{
		checkPlan, checkFloors, checkFaces, checkImports, checkLibraries, checkCalls, checkGoroutines,
		checkVariables, checkInits, checkSizes, checkNames, checkComments, checkUnfinished, checkSkips, checkTexts,
	} {
		all = append(all, check(t)...)
	}
	return all
}
