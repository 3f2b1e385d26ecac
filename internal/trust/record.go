package trust

// mishap is a defect of correctness that Nixie itself had: a row of the track
// record.
type mishap struct {
	commit  string // that mended it
	what    string // what went wrong, before
	foundBy string
	tests   string // that hold it now
}

// record lists those of the stores and then the rest, each with the latest first.
// What never left the branch of its author is not in it; a row about what a
// released version had says which.
func record() []mishap {
	return append(recordOfStores(), recordOfTheRest()...)
}

func recordOfStores() []mishap {
	return []mishap{
		{"cadff5f", "A dry run and the question before a redrive did not know of dedupe keys that newer messages hold, and gave other reasons than the run.", "hard use", "internal/cli.TestPreviewIsTheRun suite.Resolve/ATakenKeyIsSaid"},
		{"cadff5f", "A redrive whose filter holds ' --to ' could not be resumed: its destination was parsed out of its text.", "hard use", "internal/cli.TestOtherStories suite.Operations/WhatIsAskedIsKept"},
		{"77c02b2", "A redrive that was to stop by itself looked once a second: a wrong fix cost all that had gone by then, without a rate the whole selection.", "hard use", "redrive.TestWaitForOutcomesOfAWrongFix redrive.TestStopsWhenItDiesAgain"},
		{"98f4050", "When the first note of a process beside its store found no room, none of its later ones was read as of this life of the machine: after a kill what had not begun was charged an attempt.", "reading what else a full disk refuses", "store/sqlite.TestStagesAfterAFullDisk"},
		{"a76d3b3", "A commit that a full disk refused ended all use of the store by the process, also when there was room again.", "reading what was decided about failed commits", "internal/powerloss.TestFullDisk store/sqlite.TestSmallDisk internal/cli.TestRunGoesOnWhenThereIsRoom"},
		{"a76d3b3", "A full disk was told with the code for limits, which imports and redrives take for the fault of one letter, and go on to the next.", "reading who acts on codes", "internal/powerloss.TestFullDisk"},
		{"ca48137", "While the transaction in which a handler had completed its message stayed open, all renewals of its worker waited for it, and other leases ended.", "reading what locks are held for long", "worker.TestCompletedIsNotRenewed"},
		{"d3d1d59", "On PostgreSQL a claim that took several ranges could fail, by the plan that the server had made, and left their messages to nobody until the leases ended.", "the test of ranges on a busy machine", "store/postgres.TestMembersComeInTheirOrder"},
		{"a616070", "On PostgreSQL the lease of a message of a strict stream was shorter by the time that its claim had waited for another.", "a history on a busy machine", "store/postgres.TestTimeOfWaiting"},
		{"842b4a4", "On PostgreSQL a caller's transaction that had added to a strict stream kept settlements of that stream waiting until it ended, with all that was settled in the same call.", "reading what locks are held for long", "store/postgres.TestAddingKeepsNobodyWaiting store/postgres.TestWhatEndsWhileItIsAddedTo store/postgres.TestTransactionsBesideStreams"},
		{"842b4a4", "On PostgreSQL a message that a caller's transaction of repeatable read added to a strict stream stayed there for ever, if what was before it had ended since that transaction began to read.", "reading what a lock does not tell an old snapshot", "store/postgres.TestAddingByAnOldSnapshot"},
		{"fd8b112", "On PostgreSQL a settlement of members of ranges and of streams locked batches in two groups: a deadlock was possible.", "reading the order of locks", "store/postgres.TestBatchesAreLockedInOrder"},
		{"b8fd488", "On PostgreSQL the log of jobs for SQL forgot a job whose letter was purged, taken in and purged again, when the first purge was pruned from the audit.", "reading what views read", "store/postgres.TestPurgedAgainIsDeletedInTheLog"},
		{"f58b942", "On PostgreSQL a call in a caller's transaction that the server refused at its end left the transaction failed instead of as it was.", "writing the test of another refusal", "store/postgres.TestCallIsWholeOrNothing"},
		{"f58b942", "On PostgreSQL a caller's transaction of repeatable read or serializable could leave messages of streams waiting for ever, as it decided by streams as they had been.", "reading what a lock does not tell an old snapshot", "store/postgres.TestOldSnapshotsAreRefused"},
		{"6f9f2ed", "On PostgreSQL a caller's transaction that completed a message and stayed open beyond the end of its lease kept all queues without order from being claimed.", "reading what a claim waits for", "store/postgres.TestLeaseThatEndsInATransaction"},
		{"aee6a91", "On PostgreSQL a call of several settlements, one of which was over, could tell that another was done, though it had been undone with it.", "histories of several processes, of which a message came twice", "store/postgres.TestSettledBesideWhatIsOver"},
		{"50e307d", "On PostgreSQL a call whose connection had died without a word waited for ever, and so did the heart of its process.", "connections that go mute", "store/postgres.TestB053_ConnectionThatIsMute"},
		{"24f5224", "On PostgreSQL streams, messages and keys were locked in several orders: each deadlock cost a second, and a call that met many of them was given up.", "all calls at once, with the server's log of locks", "store/postgres.TestCallsInEachOthersWay"},
		{"9461301", "After a server had forgotten a claim of plain messages, who had made it could settle a message of the next holder, if that had a row by then.", "reading what the number of a batch is for", "store/postgres.TestForgottenClaimSettlesNothing"},
		{"793a54b", "After a crash of the server that forgot moves of a cursor, two claims could get the same plain messages, and a process that had seen those moves got none of them any more.", "kills of a server, and the check of spans", "store/postgres.TestForgottenMovesHoldUpNobody store/postgres.TestServerKilled"},
		{"793a54b", "On PostgreSQL the key of an origin that a caller gave shared memory with it while its call waited for others.", "tests of calls that wait", "store/postgres.TestWaitingCallsAreCopied"},
		{"08da737", "On PostgreSQL each claim of messages that had failed read all messages there are, when the server had looked at the tables while they were small.", "profiles of failing work", "store/postgres.TestPlansOfFailures"},
		{"5af962d", "A part of a password was shown, when the URL of a PostgreSQL store had a slash, a question mark or a number sign in it as they are.", "the table of bad input", "internal/cli.TestShow6BadPostgres"},
		{"eb0ca54", "A run ended when its server was away for 10 seconds, and did not wait for it.", "reading what a minute without a server leads to", "internal/runner.TestTroubleOfAServer internal/cli.TestRunGoesOnWhenTheServerIsBack"},
		{"2da5e27", "A process that was held up for more than a second between reading the clock and using it set the time of a SQLite store ahead by as much, for good: leases of that moment ended early.", "a history on a busy machine", "store/sqlite.TestStoreTime"},
		{"ffa7f34", "A caller that left while its group was committed could be told that its message was accepted, though nothing had been written.", "10,000 histories on a busy machine", "store/sqlite.TestNobodyIsToldOfAnothersCommit"},
		{"3637227", "A head that is marked to pass was counted as blocked by another marked message of its stream.", "5,000 random runs of 150 steps", "suite.Streams/AMarkedHeadIsStillTheHead"},
		{"f9b0fc4", "Of several processes that made the same new store at once, some were told that it is locked.", "the kills of one of three processes", "store/sqlite.TestOpenANewStoreTogether"},
		{"3999637", "The overview took a message that waits behind its head again for the oldest ready one.", "not recorded", "suite.Streams/AMarkedOneWaitsForADueHead store/sqlite.TestModel"},
		{"86c47f7", "After a change of the dedupe scope verify took keys that were still held for damage.", "not recorded", "suite.Dedupe/ANewScopeHoldsFromNowOn"},
		{"261cb25", "Keys of inboxes were kept for ever, as nothing on the command line could remove them.", "not recorded", "store/sqlite.TestPruneForgetsKeys"},
		{"77878a3", "The two stores replaced different fields of a message that was there, and a message could be moved into a closed queue.", "comparing the answers of the two stores", "suite.Dedupe/ReplaceExistingTakesHeadersTypeAndKey suite.Amend/MoveIntoAClosedQueueIsRefused"},
		{"24345d9", "The audit of all queues left out the hash of the entry before.", "not recorded", "suite.Trail/TheAuditOfAllQueues"},
		{"518fd73", "A process that opened a store while another made it saw half of it and refused it as another program's file.", "not recorded", "store/sqlite.TestB043_ContentionWaits store/sqlite.TestOpenANewStoreTogether"},
		{"e0f0978", "The oldest ready message of a queue was the one that came first, not the one that had been due longest.", "not recorded", "suite.Queues/OldestAndNext"},
		{"60f9c1b", "Readers that always overlapped let the log of writes grow without bound.", "the tests of that commit", "store/sqlite.TestLogOfWritesIsBounded"},
		{"60f9c1b", "A claim whose caller left while it was committed could leave its messages leased to nobody until the lease ended.", "callers that leave at random", "suite.Races/B042_CallersThatLeave"},
		{"cfcd3e1", "Of eight processes that wrote, four got nothing: waiting writers slept past their turn.", "many processes at once", "store/sqlite.TestR11_ManyProcesses store/sqlite.TestTransactionsHaveTheirTurn"},
		{"cfcd3e1", "A message that could not be read kept its whole queue from being claimed.", "damage by hand", "store/sqlite.TestR27_DamagedMessageIsHandedOut"},
		{"9da53c4", "A caller that left while its call ran shared memory with the committer, and could be shown a success that it was not told of.", "not recorded", "suite.Races/B042_CallersThatLeave"},
		{"9da53c4", "Close could strand a claim whose owner it had just struck off, or hang a read.", "not recorded", "suite.Races/B034_CloseDuringCalls"},
		{"9da53c4", "Two first claims in one transaction registered their process twice.", "not recorded", "store/sqlite.TestFirstClaimsRegisterOnce"},
		{"9da53c4", "A clock that was set back stopped leases and delays.", "not recorded", "store/sqlite.TestClockSetBack"},
		{"9da53c4", "Moments after the year 2262 wrapped around and were due at once.", "not recorded", "store/sqlite.TestFarMoments"},
		{"9a93b8e", "Who claimed one message at a time starved either retries or new messages.", "the suite for stores", "suite.Claim/RetriesDoNotStarveOneAtATime suite.Claim/NewMessagesDoNotStarveOneAtATime"},
		{"9a93b8e", "A letter whose message was on its way could be held; a discard could be taken back without a dead message; a delivery that a call extended twice was refused.", "the suite for stores and random operations", "suite.Resolve/HoldDoesNotStopARedrivenOne suite.Resolve/DiscardAndRestore suite.Lease/ExtendOfOneTwice"},
		{"0b0e64a", "Readers took turns, so that each filled a cache of its own: a list of all letters had 158 MiB resident.", "memory measured with a million letters", "store/sqlite.TestOneReaderStaysWarm internal/cli.TestShow4AMillionLetters"},
		{"aa0d98b", "The memory store counted refused letters of an operation as failed.", "not recorded", "suite.Operations/CountsAddUp redrive.TestRefusals"},
		{"e8576f6", "The memory store named groups by flag in other words than filters do, and forgot the operation of a letter.", "random operations on both stores", "store/sqlite.TestModel suite.Lists/R25_GroupsMatchARecount"},
		{"b1f5af1", "A group of a redrive had 30 s from its beginning: on a machine with much else to do it was cut short.", "a test under load", "redrive.TestB085_SlowGroupsAreNotCutShort"},
		{"73ac854", "A store that stayed locked made its callers wait without end.", "a fault at every call to the disk", "internal/powerloss.TestFailAtEveryCall store/sqlite.TestB060_ALockedStoreAnswersAll"},
	}
}

func recordOfTheRest() []mishap {
	return []mishap{
		{"dac4b5d", "--backoff 10h waited 15 minutes: a first wait above the cap became the cap without a word.", "hard use", "policy.TestBackoffAboveItsCap internal/cli.TestRunScripts"},
		{"5ad72bd", "A worker whose store was closed under it went on in vain, without a line and without an error; lost leases and outcomes that came too late were told to observers only.", "hard use", "worker.TestStoreIsClosedUnderItsWorker worker.TestLogOfLostLeases"},
		{"cdfb9b3", "A command whose output nobody read for longer than its lease was taken for abandoned: its item could become a letter, though it had succeeded.", "reading how long a decision may take", "internal/cli.TestRunOutputThatIsReadLate"},
		{"21c2b85", "A field that was misspelt in the command of nixie run buried every item of the list.", "hard use", "internal/cli.TestRunScripts"},
		{"21c2b85", "CSV with semicolons or tabs was read as one wide column.", "hard use", "internal/cli.TestRunScripts"},
		{"21c2b85", "Steps that a command had reported did not reach its next attempt, nor did variables of the caller whose names begin like ours.", "hard use", "internal/cli.TestRunScripts internal/command.TestEnvironment"},
		{"11165e3", "What commands of nixie run, work and consume printed was thrown away without a word.", "hard use", "internal/cli.TestRunScripts internal/command.TestOutputIsWhole"},
		{"7bbe75a", "Items of plain lines were shown by a hash of their content only.", "hard use", "internal/cli.TestRunScripts"},
		{"abd3597", "A queue for replies was taken with a message, and nothing was done with it.", "hard use", "internal/cli.TestR59_EveryVerbInEveryForm"},
		{"45c5c4d", "A queue that waited on PostgreSQL made 20 claims and used 20 transaction IDs a second although its process listened; in SQLite it asked a dozen statements as often.", "hard use", "store/postgres.TestIdleCostsNothing store.TestIdleSourceDoesNotClaim store/sqlite.TestWatchLooksWhereSomethingIs"},
		{"7935b49", "In items for MapReduce the exit codes that had been taken for another reason than a failed command were lost.", "hard use", "internal/letterfile.TestExitCodesAndStepsAreKept"},
		{"c7d58df", "Headers of Spring Kafka of four to eight letters, such as the consumer group, were shown as numbers; the reason was not that of the root cause; an error in the key of a record was none.", "hard use, with letters that the framework wrote", "broker.TestGoldenLetters"},
		{"c7d58df", "A record that waited on a topic of retries was adopted as a letter, and once more when it died.", "hard use", "broker.TestWaiting internal/cli.TestBrokerStories"},
		{"c7d58df", "All panics that Watermill recovered had their stack in their text, and no reason.", "hard use, with letters that the framework wrote", "broker.TestPanicsOfWatermillAreGroups broker.TestGoldenLetters"},
		{"c7d58df", "In JSON a partition or an offset of 0 was left out and one that is not known was 0 or −1; adopted letters had 0 attempts and a first one.", "hard use", "broker.TestGoldenLetters internal/cli.TestBrokerStories"},
		{"24489c7", "Answers of 503 and of 429 with one text were one group, and so were other codes.", "hard use", "policy.TestNormalise"},
		{"24489c7", "The stack of a panic began with frames of ours, and in what is shown of it the user's were missing.", "hard use", "worker.TestPanicNamesTheUsersFunction policy.TestPanicStack"},
		{"6653b50", "A redrive to a Kafka broker that took records and never answered ended only by a kill, and did not say what was open.", "a broker that answers nothing", "broker/kafka.TestStoppedRedriveOfASilentBroker broker/kafka.TestStoppedRedriveOfAnOfficeToASilentBroker internal/cli.TestRedriveToASilentBroker"},
		{"e7db4ef", "A worker on a Kafka broker that did not answer for a letter took more than a minute to stop, and called its source stuck.", "reading what ends the waiting", "worker.TestSlowCallsEndWithTheWorker broker/kafka.TestStopWhileALetterHasNoAnswer"},
		{"e7db4ef", "Letters that nixie consume sent to a topic held up what had succeeded beside them.", "reading which abilities of a source are passed on", "internal/runner.TestConsumptionPassesOnWhatIsSlow"},
		{"6653b50", "A redrive of a topic put letters that did not say where they had died onto a channel .quarantine, if all others went to one that was named.", "reading what is refused", "redrive.TestStrayLettersPutAside"},
		{"0c418b2", "A letter that the office had was not moved on when its message died again with a broker: the death became another letter, under another ID.", "hard use", "suite.Bury/R30_DiesAgainElsewhere suite.Bury/R30_NoLaterDeath"},
		{"1185922", "A record that died again after a redrive got another letter, also on its topic.", "hard use", "broker.TestR30_DiesAgainAsTheSameLetter"},
		{"5383c01", "A letter that was on a topic and in the office was redriven from both.", "hard use", "internal/cli.TestRunScripts"},
		{"4b5dd3b", "No test noticed when a damaged letter was sent to a broker, nor a letter of a record that was no longer ours.", "planted changes", "redrive.TestDamagedLettersAreNotSent broker.TestNothingIsKeptOfWhatIsLost"},
		{"a067e1b", "nixie consume --idle ended with 0 while records of a member that had vanished, or retries in hand or on a stage, were left.", "hard use", "internal/cli.TestIdleWaitsForAMemberThatVanished internal/cli.TestIdleWaitsForRetries internal/cli.TestIdleNamesWhatOthersHave"},
		{"a067e1b", "nixie consume failed, with all of it done and committed, when the group did not hear that it left.", "hard use", "internal/cli.TestALeaveThatFailsIsAWarning"},
		{"a067e1b", "The marks that end transactions were never committed, so that a group on Kafka lagged behind by one for ever.", "reading what is counted", "broker/kafka.TestMarksOfTransactionsAreDone"},
		{"bf4085c", "nixie consume --idle never ended once a waiting record was lost to another consumer.", "reading the code for another change", "internal/runner.TestIdleAfterALoss"},
		{"585906d", "On Kafka a record that kills its consumers was found only after about as many of them had died as records were before it in hand.", "three processes killed over 100,000 records", "broker/kafka.TestFewHoldersFindThePoison broker/kafka.TestShow1_ConsumersAreKilled"},
		{"585906d", "A letter of which an office had not all headers was redriven as if it were whole, and a record larger than an office takes held up its partition for ever.", "reading what is cut", "broker.TestTooLargeForAnOffice redrive.TestCutLettersStay broker/kafka.TestRecordLargerThanAnOffice"},
		{"585906d", "Letters that had been purged came back when their topic was adopted again.", "reading what adopting remembers", "internal/cli.TestBrokerStories"},
		{"585906d", "Of letters of Spring Kafka the times of retry topics were not read, the attempts were one too many, and the exception was always that of the container.", "letters that the framework wrote", "broker/kafka.TestDeathsOfFrameworksGoHome"},
		{"19bb72c", "While the topic of the letters took nothing, records beside them that needed no letter were not finished either.", "brokers that refuse", "broker/kafka.TestLettersThatNobodyTakes"},
		{"6ad29d4", "A record that waited in hand was changed for its next turn while the renewal of the last one still read it.", "the race detector", "broker.TestNextTurnIsAnotherDelivery"},
		{"c407b5e", "dlq show and message show wrote the reason of a failure, which a handler chooses, as it is: it could act on a terminal.", "every view of a store in which each text is hostile (B102)", "internal/cli.TestB102_NoViewActsOnATerminal"},
		{"4d21762", "The log of a message that was moved told nothing of what was done before.", "not recorded", "internal/cli.TestStreamNextOfADeadHead internal/cli.TestR59_EveryVerbInEveryForm"},
		{"f64834e", "A move by filter turned the order of what it moved round; stream show advised what was done already; queue set needed a store that only the first message makes.", "a story for every flag", "internal/cli.TestR59_EveryVerbInEveryForm internal/cli.TestStreamNextOfADeadHead"},
		{"4d745f8", "A message with attempts left over died of reason unknown and so in a group of its own; what never_dead names was refused after max_attempts.", "not recorded", "policy.TestLeftOverAttemptsKeepTheLastReason policy.TestNeverDeadIsRunBeyondMaxAttempts"},
		{"bd9bc7f", "An audit whose oldest entries had been pruned was taken for broken by audit verify and export.", "joining two lines of work", "office.TestAnExportedAuditCanBeCheckedElsewhere suite.Prune/TheAuditKeepsItsAnchor"},
		{"dbc0c1e", "The summary of a run offered a redrive that moved nothing.", "not recorded", "internal/cli.TestRunNextCommandsWork"},
		{"9736a1f", "A process that starts while a killed runner's are looked for could be missed and live on.", "kills under load", "internal/command.TestOneEmptyLookIsNotTheEnd"},
		{"9ef8018", "nixie run -o json wrote foreign text that acts on a terminal.", "hostile items", "internal/cli.TestRunHostileItems"},
		{"0028e36", "After a run had halted, what it had in hand was still started.", "not recorded", "internal/runner.TestHaltedRunBeginsNothing"},
		{"2a39532", "The modes retry and custom ended at max_attempts, because what they asked for was refused at the door.", "stories of nixie run", "internal/cli.TestRunScripts"},
		{"52adacc", "A run whose store failed for good hung without a word; one that was aborted left items of commands that need SIGKILL as crashed; an interrupt did nothing while a list came from a pipe.", "not recorded", "internal/runner.TestTrouble internal/cli.TestRunSecondInterrupt internal/cli.TestRunInterruptedList"},
		{"cf7f386", "Answers of a wrong length, an error beside deliveries, a source that does not listen and a settlement that never works could each keep a worker from ending, or lose what it had in hand.", "not recorded", "worker.TestB098_AnswersOfWrongLength worker.TestReceiveWithAnErrorBesideDeliveries worker.TestB053_ReceiveThatDoesNotListen worker.TestSettleNeverWorks"},
		{"bcc7bef", "A renewal read the steps of a delivery while its handler added one; the memory store dropped a second failure.", "not recorded", "worker.TestStepsAreSavedByRenewals worker.TestSecondFailureIsKept"},
		{"37f94e5", "A killed run could repeat more commands than had been running.", "not recorded", "worker.TestSettleEachBoundsWhatACrashRepeats internal/cli.TestShow2KilledThreeTimes"},
		{"26683d3", "What a dead process had in hand came back at one item in two seconds, however idle the machine was.", "hard use", "worker.TestRecoveryTakesSeconds suite.Abandon/AllIsJudgedInOneClaim"},
		{"26683d3", "Each kill of a runner spent an attempt of all that it had in hand: innocents that were there twice ended as poison.", "hard use", "internal/cli.TestTenKillsOfTheRunner suite.Abandon/SuspectsComeInGroupsThatHalve policy.TestOnlyAHolderThatWasAloneConvicts"},
		{"68ff0b9", "The end of a terminal killed a run, and left suspects.", "hard use", "internal/cli.TestRunFirstInterrupt"},
		{"aae250a", "An error that panics or runs on was harmless for the first who read it only.", "not recorded", "policy.TestHostileErrorsAreSurvived"},
		{"793a54b", "The time at which a message is due was said of some that need not wait and of others not, as the store keeps them.", "reading the output of commands", "internal/cli.TestNotBeforeHasOneForm"},
		{"585906d", "A Kafka member whose commit had failed once ended with that error, although everything was committed before it left.", "rebalances on a busy machine", "broker/kafka.TestCommitThatSucceedsInTheEnd"},
		{"585906d", "A redrive from a topic took as many bytes into memory as 5,000 records have.", "reading the code for speed", "broker/kafka.TestReadingLargeRecords"},
		{"d0da0af", "Retry topics were not made where brokers had not heard of their source at the first look: those after it were answered from memory.", "the suite on a busy machine", "broker/kafka.TestCreateLooksAgain"},
		{"1960575", "A harness, not the product: after a sync that failed, the disk for power loss brought old bytes of a page back.", "not recorded", "internal/faultdisk.TestSyncAfterFailedSync"},
	}
}
