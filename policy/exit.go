package policy

import "github.com/nixie-go/nixie"

// exits has the exit codes with a meaning: those of sysexits.h that tell an item from its
// surroundings, of timeout(1), and of a shell that cannot run what it was told to.
var exits = map[int]classification{
	65:  {nixie.ClassPermanent, nixie.ReasonValidation},    // the item is wrong
	69:  {nixie.ClassTransient, nixie.ReasonDependency},    // something it needs is down
	75:  {nixie.ClassTransient, nixie.ReasonHandler},       // try again
	77:  {nixie.ClassPermanent, nixie.ReasonAuth},          // not allowed
	78:  {nixie.ClassPermanent, nixie.ReasonCommandFailed}, // its configuration is wrong
	124: {nixie.ClassTransient, nixie.ReasonTimeout},       // timeout(1) ended it
	126: {nixie.ClassPermanent, nixie.ReasonCommandFailed}, // the program cannot be run
	127: {nixie.ClassPermanent, nixie.ReasonCommandFailed}, // there is no such program
}

// OfExit returns what the exit code of a command means: its class and reason. A shell adds 128 to
// the signal that ended its command, see [OfSignal]. Any other code is unknown, command-failed.
func OfExit(code int) (nixie.Class, nixie.Reason) {
	known := ofExit(code)
	return known.class, known.reason
}

func ofExit(code int) classification {
	if known, ok := exits[code]; ok {
		return known
	}
	if signal := code - 128; signal > 0 && signal < 32 {
		class, reason := OfSignal(signal)
		return classification{class, reason}
	}
	return classification{nixie.ClassUnknown, nixie.ReasonCommandFailed}
}

// OfSignal returns what the signal that ended a command means. A program that broke itself (ILL,
// TRAP, ABRT, BUS, FPE, SEGV, SYS) has failed like any other. Of any other signal, as KILL when
// memory is short, the surroundings are to blame: transient, resource.
func OfSignal(number int) (nixie.Class, nixie.Reason) {
	switch number {
	case 4, 5, 6, 7, 8, 10, 11, 31: // 10 is BUS on BSD and macOS
		return nixie.ClassUnknown, nixie.ReasonCommandFailed
	}
	return nixie.ClassTransient, nixie.ReasonResource
}
