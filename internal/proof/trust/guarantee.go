package trust

// guarantee is what a system of this kind should promise: a row of the list G.
// What of it Nixie promises today is a promise of docs/guarantees.md, named by
// its bold words, and has the tests of that promise as well.
type guarantee struct {
	number   int
	words    string
	promises string // of docs/guarantees.md, separated by "; "
	tests    string // beside those of the promises
	proofs   string // kinds of random ones that look for it in every case, separated by ", "
	later    string // what of it is not built
}

func guarantees() []guarantee {
	return append(append(append(guaranteesOfQueues(), guaranteesOfStreams()...), guaranteesOfLetters()...), guaranteesOfTheRest()...)
}

func guaranteesOfQueues() []guarantee {
	return []guarantee{
		{1, "What was accepted is durable.", "Accepted is durable", "", "power loss, kill, history", ""},
		{2, "What was refused is not there: no message, no key, no entry.", "All or none", "suite.Audit/WhatIsRefusedHasNone suite.Resolve/NonsenseIsRefused", "rapid", ""},
		{3, "An unknown outcome is called so, and repeating the call gives one message.", "Unknown is labelled", "", "power loss, history", ""},
		{4, "A call is taken in whole or not at all.", "All or none", "suite.Limits/MessagesOfACall suite.Limits/BytesOfACall", "power loss, rapid", ""},
		{5, "What is enqueued in a transaction of the caller is there if and only if that commits.", "If and only if it commits", "", "power loss", ""},
		{6, "Bytes out are bytes in, checked by their hash.", "Bytes out are bytes in", "suite.Limits/BodySize suite.Bugs/B069_NumbersStayAsTheyAre", "rapid", ""},
		{7, "Every message is offered until it ends.", "At least once", "", "kill, history", ""},
		{8, "A life ends once.", "One end", "suite.Bugs/B001_RescueOfWhatMovedOn", "history, rapid", ""},
		{9, "One lease is current; calls under another change nothing.", "One holder", "", "history, rapid", ""},
		{10, "Who renews in time does not overlap with another.", "The handler is told first", "worker.TestB014_SlowStoreAndLongWork worker.TestB018_RenewalsOfEachLease suite.Bugs/B015_TenLeasesWithRenewals", "", ""},
		{11, "What a dead worker held can be claimed soon.", "Crashes are found soon", "", "kill", ""},
		{12, "Nothing is handed out before its time by the store's clock.", "Never early", "suite.Bugs/B022_DelayOfAHundredLeases suite.Bugs/B077_AMomentIsTheSameInEveryZone worker.TestB078_ClocksAnHourOff", "", ""},
		{13, "Attempts and deliveries are bounded, also where workers die.", "Bounded; Crashes count", "", "rapid", ""},
		{14, "Waits are bounded, never negative, and have jitter also at the cap.", "Bounded", "policy.TestR2_FullJitterFillsTheBand policy.TestB075_WhatFailsTogetherComesBackApart", "", ""},
		{15, "An effect in the same file happens once, on request.", "An effect once, on request", "", "history, kill", ""},
		{16, "After a cancel nothing starts, and a late success does not count.", "A cancel holds", "suite.Lease/R12_LateCallsAreFenced", "history", ""},
		{17, "After a drain the process holds nothing, and leases were renewed to the end.", "A stop is clean", "worker.TestRenewalWhileDraining worker.TestB023_OneOfTwoPoolsStops", "", ""},
		{18, "Nobody starves.", "Nobody starves; A blocked stream holds up no other", "suite.Bugs/B056_MuchThatIsNotDue suite.Bugs/B057_AbandonedKeepsItsPriority", "", ""},
	}
}

func guaranteesOfStreams() []guarantee {
	return []guarantee{
		{19, "A stream starts in its order, one at a time.", "One at a time; Strict is strict", "suite.Bugs/B066_BatchFromOneStream", "history, rapid", ""},
		{20, "In a strict stream a dead message blocks until somebody decides.", "Strict is strict", "", "rapid", ""},
		{21, "In a relaxed stream the others go on, and who is handed out of order is told.", "Relaxed goes on; A gap is told", "", "rapid", ""},
		{22, "A redrive into a stream does not rewrite what has been.", "Redriven in order", "suite.Streams/AFreedHeadIsAppended suite.Streams/ARedrivenHeadKeepsItsPlace", "rapid", ""},
		{23, "Of a key one message is the holder, by a constraint of the store.", "One holder of a key", "", "history, rapid", ""},
		{24, "Nobody is told of a duplicate that is not there.", "", "store/sqlite.TestB061_WinnersThatRollBack suite.Dedupe/ReturnExistingNamesTheHolder", "", ""},
		{25, "A key is free in the transaction that ends its message, and by its holder alone.", "One holder of a key", "suite.Dedupe/RedriveTakesTheKeyAgain suite.Dedupe/R36_RedriveOfATakenKeyIsAConflict suite.Purge/TheKeyIsFree", "rapid", ""},
	}
}

func guaranteesOfLetters() []guarantee {
	return []guarantee{
		{26, "A death is one transaction.", "A death is one transaction", "", "power loss, kill", ""},
		{27, "A letter holds the original bytes and every attempt.", "The whole story", "", "rapid", ""},
		{28, "No letter ends silently.", "No silent end; Nothing goes before its time", "suite.Bugs/B086_RetentionCountsFromTheLatestDeath store/sqlite.TestB088_Reserve", "", ""},
		{29, "Where a death cannot be recorded the message stays claimable.", "A death is one transaction", "worker.TestB026_OneCallFails internal/proof/powerloss.TestFailAtEveryCall", "power loss", "the acknowledgement of a broker's message: " + withBrokers},
		{30, "What is done about a letter and fails leaves it where it is.", "", "internal/cli.TestWatchRunsACommandForEachNewGroup redrive.TestRefusals", "", ""},
		{31, "One letter for a message, however often it dies.", "One letter for a message; Adopted once", "suite.Bury/ByOriginTwiceAddsNothing", "rapid", ""},
		{32, "What cannot be decoded is dead at once and blocks nobody.", "What cannot be decoded is dead at once", "worker.TestB073_UndecodableIsNotTriedAgain", "", ""},
		{33, "An operation moves a letter at most once.", "Once", "", "rapid", ""},
		{34, "An operation goes on after a crash, and its counts add up.", "It can be stopped anywhere", "redrive.TestB082_ManyPagesCrashesAndNewLetters", "kill", ""},
		{35, "A redrive keeps its rate.", "Limited", "redrive.TestRateDropsArrears", "", "one rate of several processes, each of which has its own"},
		{36, "Redrives are counted for ever and capped.", "No loops", "suite.Bugs/B091_FiftyRedrives", "", ""},
		{37, "What an operation is about is fixed when it is made.", "Frozen", "", "rapid", ""},
		{38, "One letter that cannot be moved does not stop the others.", "One bad letter does not stop the others", "redrive.TestB085_OneBadOfAThousand", "", ""},
		{39, "A redrive to a broker is at least once, with one ID.", "A redrive to a broker is done once; Redrives end", "broker/kafka.TestRedriverKilledAtAnyMoment", "kill", ""},
	}
}

func guaranteesOfTheRest() []guarantee {
	return []guarantee{
		{40, "Every change is in the audit, and what was changed there is found.", "Whatever an operator does to a letter or a queue; A changed, removed or inserted entry is found", "", "rapid", "a signed head, so that a cut tail is found"},
		{41, "Audit, logs and lists hold no bodies and no known secrets.", "Known secrets are not recorded", "suite.Lists/BodiesOnlyWhenWhole", "", "that to reveal a body is an entry of the audit: " + withAPI},
		{42, "Everything has a limit with a name.", "Everything has a limit with a name", "", "", ""},
		{43, "Below the reserve new work is refused, and work under way is settled.", "", "store/sqlite.TestB088_Reserve", "", ""},
		{44, "Kafka: no offset is committed past a record that is neither done nor buried.", "Committed is done; The letter comes first", "broker/kafka.TestPrefix broker/kafka.TestChangesAtEveryPoint broker/kafka.TestShow1_ConsumersAreKilled", "rapid, kill", ""},
		{45, "RabbitMQ: acknowledged after the outcome, published only when confirmed.", "", "", "", withRabbit},
		{46, "NATS: confirmed acknowledgements, and our count decides.", "", "", "", withNATS},
		{47, "SQS: deleted after the outcome, each entry judged alone.", "", "", "", withSQS},
		{48, "Data is never code.", "Data is never code", "", "", "options of git: " + withWorktree},
		{49, "Each attempt has a worktree of its own, and merges are made one by one.", "", "", "", withWorktree},
		{50, "At a timeout all processes of a command end, and its output is bounded.", "Nothing is left running", "", "", ""},
		{51, "After a kill a run goes on, and what had finished is not run again.", "It goes on", "store/sqlite.TestKills", "kill", ""},
		{52, "Nobody gets in without a permission.", "", "", "", withAPI},
		{53, "A repeated call of the API is answered as the first was.", "", "", "", withAPI},
		{54, "Foreign text is inert wherever it is shown.", "", "internal/cli.TestB102_NoViewActsOnATerminal internal/cli.TestEscape internal/cli.FuzzEscape", "", "pages: " + withConsole},
	}
}
