package trust

// bugsOfKeys are about dedupe and identity.
func bugsOfKeys() []bug {
	return []bug{
		{61, "oban-bg/oban#1087, #1093", "Who lost the lock took for granted that the winner commits; it rolled back, and there was no job.", "store/sqlite.TestB061_WinnersThatRollBack store/postgres.TestB061_WinnersThatRollBack", ""},
		{62, "oban-bg/oban#1505", "A refused insert had neither a reason nor a job.", "suite.Dedupe/FailOnConflictRefusesTheCall suite.Dedupe/ReturnExistingNamesTheHolder suite.Races/B062_ProducersOfOneKey", ""},
		{63, "hibiken/asynq#275", "Deleting a unique task left its lock.", "suite.Dedupe/ScopeActive suite.Dedupe/CancelFreesTheKey suite.Purge/TheKeyIsFree suite.Prune/KeysGoWithTheirMessage", ""},
		{64, "taskforcesh/bullmq#1662, #2870", "A job that was half finished was in no list, and its ID blocked new ones.", "internal/proof/powerloss.TestR18_AMoveIsWholeAtEveryCrash store/sqlite.TestKills store/postgres.TestConnectionCutAnywhere", ""},
		{65, "taskforcesh/bullmq#3236", "A key was removed by a job that no longer had it.", "suite.Dedupe/B065_LateFinisherOfALeaseThatIsOver suite.Dedupe/ALateFinisherDoesNotFreeTheKey", ""},
		{66, "timgit/pg-boss@39920d2", "The rule of one at a time did not hold for batches.", "suite.Bugs/B066_BatchFromOneStream", ""},
		{67, "riverqueue/river#149, #168", "Jobs that came in bulk were spared defaults and uniqueness.", "suite.Bugs/B067_OneByOneIsAsTogether", ""},
		{68, "janbjorge/pgqueuer#575", "The double in memory freed keys at other times than the database.", "store/memory.TestStore store/sqlite.TestStore store/sqlite.TestModel store/postgres.TestModel store/postgres.TestStore", ""},
		{69, "hibiken/asynq#166, Sidekiq Pro", "Large numbers went through a format that cannot hold them.", "suite.Bugs/B069_NumbersStayAsTheyAre", ""},
		{70, "graphile/worker 0.17.3, janbjorge/pgqueuer#676, hibiken/asynq#426", "Numbers of 32 bits overflowed after two thousand million jobs.", "store/sqlite.TestB070_NumbersBeyond32Bits store/postgres.TestB070_NumbersBeyond32Bits", ""},
	}
}

// bugsOfAttempts are about attempts, waits, poison and time.
func bugsOfAttempts() []bug {
	return []bug{
		{71, "sidekiq/sidekiq#3400, #4069, taskiq-aio-pika#35, activepieces/activepieces#15130, vectorize-io/hindsight#2675", "A job that kills its worker never counted an attempt.", "store/sqlite.TestB071_KillerOfHolders worker.TestR13_KillerDies store/postgres.TestShow1_WorkersOfStreamsAreKilled", ""},
		{72, "timgit/pg-boss@7dea410, @0183ecd", "Giving back what had not started burned a retry.", "suite.Settle/R14_ReleaseRefundsAttempt", ""},
		{73, "riverqueue/river#1324", "Arguments that cannot be decoded were tried again and again, also by the rescuer.", "worker.TestB073_UndecodableIsNotTriedAgain worker.TestDamagedBodyIsNotRun", ""},
		{74, "timgit/pg-boss#677, @2276d34, ferd/backoff#8", "The wait was wrong, and at its maximum it had no jitter.", "policy.TestR2_FullJitterFillsTheBand policy.TestR2_JitterStaysWithinItsBand", ""},
		{75, "rails/rails#31872, payloadcms/payload#16318", "Without jitter what failed together came back together.", "policy.TestB075_WhatFailsTogetherComesBackApart", ""},
		{76, "janbjorge/pgqueuer#296", "A tight loop without end during an outage of the database.", "worker.TestB076_ReceiveFailsForAMinute worker.TestReceiveThatDoesNotWaitIsNoTightLoop store/postgres.TestServerKilled", ""},
		{77, "maragudk/goqite#68", "Timeouts were compared in local time.", "suite.Bugs/B077_AMomentIsTheSameInEveryZone", ""},
		{78, "Krzysztof318/MailFathom#1989, mlflow#25199", "Leases were judged by the clock of each replica: skew stole live ones.", "worker.TestB078_ClocksAnHourOff store/sqlite.TestClockSetBack", ""},
		{79, "sidekiq/sidekiq#4000", "Elapsed time was taken from a clock that can be set.", "worker.TestB079_ClockSetWhileItRuns policy.TestTookIsNeverNegative", ""},
		{80, "ThreeDotsLabs/watermill#580, #645", "The order in which parts were put together decided whether a retry comes before the poison queue.", "policy.TestB080_TheDocumentedOrderIsTheOrder policy.TestTheEarlierRuleBeatsTheLaterOne", ""},
		{81, "Particular/ServiceControl#4930", "A hostile stack trace timed out the expression that groups errors.", "policy.TestB081_HostileTextTakesLinearTime privacy.TestSecretsTakeLinearTime", ""},
	}
}

// bugsOfLetters are about dead letters and redrive.
func bugsOfLetters() []bug {
	return []bug{
		{82, "temporalio/temporal#12007, cadence-workflow/cadence#4769", "A merge replayed one page and deleted the range: the rest was gone.", "redrive.TestB082_ManyPagesCrashesAndNewLetters redrive.TestR29_InterruptedAnywhere", ""},
		{83, "temporalio/temporal#5077", "Before there was a dead letter store, what failed for good was dropped.", "policy.TestDecideProperties suite.Tables/EveryStateAndEvent", ""},
		{84, "Particular/ServiceControl#4775, #4789, #4797", "One message in two retry batches was sent twice.", "redrive.TestR33_TwoOverTheSameSet suite.Redrive/R33_TwoRedrivesNoDouble", ""},
		{85, "Particular/ServiceControl#565, #1508", "One message that could not be sent blocked all retries, and its lock stayed.", "redrive.TestB085_OneBadOfAThousand", ""},
		{86, "Particular/ServiceControl@f9bc7c2", "A message that failed again kept its old expiry and was deleted unresolved.", "suite.Bugs/B086_RetentionCountsFromTheLatestDeath", ""},
		{87, "Particular/ServiceControl#5127, @785985a", "Editing and retrying were not one write, and an edit that was ignored was not told.", "", "later, with editing before a redrive; letters cannot be edited yet"},
		{88, "Particular/ServiceControl#3348", "The disk was full, and failures could not be taken in.", "store/sqlite.TestB088_Reserve store/sqlite.TestSmallDisk", ""},
		{89, "rabbitmq/rabbitmq-server#8799", "The dead letter target fed its own source.", "", withRabbit},
		{90, "celery/celery#9867", "The broker saw a cycle and silently dropped what was retried.", "", withRabbit},
		{91, "rabbitmq/rabbitmq-server#216", "Headers that grow at each dead-lettering crashed the queue.", "suite.Bugs/B091_FiftyRedrives suite.Letters/R21_HistoryIsBounded", ""},
		{92, "ThreeDotsLabs/watermill#173, streadway/amqp#370, amqp-node/amqplib#633", "Publishing to a queue that is missing succeeded silently.", "", withRabbit},
		{93, "rabbitmq/amqp091-go#182", "Waiting for a confirm could hang for ever.", "", withRabbit},
		{94, "confluentinc/kafka-connect-jdbc#1597", "Offsets went on, and the record was in neither place.", "broker/kafka.TestS13_MissingTopicOfLetters broker/kafka.TestS13_LetterWithoutAnswer", ""},
		{95, "spring-attic/spring-cloud-stream-binder-kafka#946", "The dead letter was published, the offset was not: copies without end.", "suite.Bury/ByOriginTwiceAddsNothing broker/kafka.TestChangesAtEveryPoint", ""},
		{96, "platformatic/kafka#339, #340", "Partitions were taken away without a word: dead letters tripled.", "broker/kafka.TestChangesAtEveryPoint broker/brokertest.TestLog", ""},
		{97, "SQS documentation", "The age of a dead letter counts from its first enqueue, so it vanishes early.", "", withSQS},
		{98, "bbc/sqs-consumer#193, apache/airflow#73423, useautumn/autumn#2415", "Failed entries of a batch were ignored, as the batch had succeeded.", "worker.TestB098_AnswersOfWrongLength suite.Settle/EachWholeOrNotAtAll worker.TestSettleFails", ""},
		{99, "brefphp/symfony-messenger#67, #81", "After a failure the later ones of its group ran and were queued again too.", "suite.Streams/R39_StrictFollowerWaitsOverBackoff suite.Streams/OneLeaseAtATime", ""},
		{100, "apache/kafka#12415", "What failed and was tolerated was tracked for ever.", "worker.TestInHandIsBounded suite.Letters/R21_HistoryIsBounded", ""},
	}
}

// bugsOfSecurity are about security and runners of commands.
func bugsOfSecurity() []bug {
	return []bug{
		{101, "sidekiq CVE-2024-32887, CVE-2023-26141", "A parameter of a request became script; another had no bound.", "", withConsole},
		{102, "Parallels/rq-dashboard#526", "The list escaped what the detail view did not.", "internal/cli.TestB102_NoViewActsOnATerminal", ""},
		{103, "rabbitmq/rabbitmq-management#358, #733, OctopusDeploy/Issues#1303", "Names of clients, hosts and audit entries ran as script.", "internal/cli.TestB102_NoViewActsOnATerminal", ""},
		{104, "mher/flower#1217", "An expression without anchors let everybody in; open by default.", "", withAPI},
		{105, "kafka-ui CVE-2023-52251, provectus/kafka-ui#4567", "A search filter ran code; the switch guarded one of two ways in.", "filter.FuzzParse filter.TestTextRoundTrip", ""},
		{106, "celery/celery#2808, #6763, #9997", "Passwords of the broker were in logs.", "privacy.TestR24_MaskingLeavesNoSecretInTheStore worker.TestR24_ObserverSeesTheMaskedError", ""},
		{107, "celery/django-celery#421, lykinsbd/naas#8", "Arguments with passwords were stored and shown.", "suite.Lists/BodiesOnlyWhenWhole internal/cli.TestR24_ShownMasked", ""},
		{108, "gogs/gogs#8263, Agent-Field/agentfield#418, marmos91/dittofs#1917", "A webhook followed a redirect to addresses inside.", "", withAPI + "; nothing calls out yet"},
		{109, "google/ax#363, nick-pape/grackle#1353, gogs/gogs#8390", "The name of a branch became an option that runs a command.", "", withWorktree},
		{110, "TryGhost/Ghost#26984, spekhq/spek#56", "Values were put into the text of a shell command.", "internal/command.TestB110_HostileItemsArriveAsTheyAre internal/cli.TestRunHostileItems", ""},
		{111, "sashiko-dev/sashiko#139, rjwalters/loom#3380, #3416, berenddeboer/ready-for-agent#614", "Worktrees that are made at once fight over locks, and cleaning up deletes those of others.", "", withWorktree},
		{112, "golang/go#18874, #23019, #25066, basecamp/basecamp-cli#694", "Killing the shell left its children, and waiting hung on their pipe.", "internal/command.TestB112_RunLeavesNoGrandchild internal/command.TestRunDetachedDaemon internal/command.TestGuardEndsAllWhenRunnerIsKilled", ""},
		{113, "Particular/ServiceControl#4875", "Waiting for the end before reading standard error was a deadlock.", "internal/command.TestB113_RunFlood", ""},
		{114, "hashicorp/memberlist#362, cortexproject/cortex#7515, guacsec/guac#3075", "Small compressed input became huge.", "internal/letterfile.TestRecordsAreBounded", "nothing is decompressed"},
		{115, "BaseIntelligence/bounty-challenge#6970, NorthlandPositronics/Cogtrix#118, TwiStarSystems/MServer#83", "An ID that became a file name read and deleted outside the folder.", "internal/letterfile.TestB115_FolderIsNotLeft", ""},
	}
}
