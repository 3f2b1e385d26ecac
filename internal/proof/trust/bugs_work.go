package trust

// bugsOfLeases are about leases, rescue and what ran twice.
func bugsOfLeases() []bug {
	return []bug{
		{1, "riverqueue/river#1302, #1373", "The rescuer read stuck jobs and wrote by ID alone: one that had finished or was claimed again meanwhile was thrown back.", "suite.Bugs/B001_RescueOfWhatMovedOn", ""},
		{2, "riverqueue/river#1318", "A page full of jobs with long timeouts hid the stuck ones behind them for ever.", "suite.Bugs/B002_SweepSeesPastLongLeases", ""},
		{3, "riverqueue/river#350, #1125, #1133, #1288, #1331", "Which of several timeouts applies was decided wrongly five times: live jobs were rescued.", "suite.Bugs/B003_OnlyItsEndEndsALease", ""},
		{4, "riverqueue/river#1258", "Thousands of jobs were shown as running for up to three months, and nothing said so.", "office.TestStalled worker.TestModel", ""},
		{5, "hibiken/asynq#1051, #1144, #1158", "A task was active but its lease entry was gone: recovery looked at leases only.", "store/sqlite.TestB005_LeaseWithoutItsOwner store/postgres.TestB005_LeaseWithoutItsOwner", ""},
		{6, "hibiken/asynq#799, taskforcesh/bullmq#2215", "An eviction policy of the server removed keys of queues.", "", withRedis},
		{7, "hibiken/asynq#90", "One scheduled task was taken by several workers.", "suite.Races/B007_ManyClaimersOfDueJobs suite.Claim/R11_NoTwoHolders", ""},
		{8, "hibiken/asynq#717", "Two recoverers listed the same expired lease.", "suite.Races/B008_TwoSweepers", ""},
		{9, "hibiken/asynq#709, #764", "One missing task made the script that lists expired leases fail for all.", "store/sqlite.TestB009_OneBadLeaseAmongAHundred store/postgres.TestB009_OneBadLeaseAmongAHundred", ""},
		{10, "OptimalBits/bull#308, #311, taskforcesh/bullmq#439, #3183", "A worker was alive and late with its renewal: the job ran twice and its result was overwritten.", "store/sqlite.TestR12_StoppedPastItsLease internal/cli.TestRunFrozenPastItsLease worker.TestR12_LateSettleIsRefusedAndTold store/postgres.TestR12_StoppedPastItsLease", ""},
		{11, "rails/solid_queue#589", "A job was both finished and failed, as deleting a claim that was gone was no error.", "suite.Races/B011_EndedTwice", ""},
		{12, "rails/solid_queue#159, #244", "A worker was struck off while it claimed: nobody owned what it got.", "internal/proof/powerloss.TestFailAtEveryCall store/sqlite.TestKills store/sqlite.TestLocksRemoved store/postgres.TestConnectionCutAnywhere store/postgres.TestR45_WhoWasTakenForDeadIsRefused", ""},
		{13, "rails/solid_queue#778", "Heartbeats failed with errors that prove nothing, and the process ran on as a zombie.", "worker.TestB013_RenewalsThatFailAnyhow worker.TestRenewalFails store/postgres.TestR45_WhoWasTakenForDeadIsRefused", ""},
		{14, "oban-bg/oban#1141", "A job was started a second time while its first run was alive.", "worker.TestB014_SlowStoreAndLongWork", ""},
		{15, "hexpm/hexpm#1825", "Rescue after six minutes of jobs that take up to forty-seven: overlapping runs every night.", "suite.Bugs/B015_TenLeasesWithRenewals", ""},
		{16, "oban-bg/oban#862", "A node came back under its old name, so that its orphans looked owned by the living.", "store/sqlite.TestB016_SameNameAfterARestart store/postgres.TestB016_SameNameAfterARestart", ""},
		{17, "janbjorge/pgqueuer#475, #474", "Jobs of a dead manager were never taken again, as the query matched its ID.", "store/sqlite.TestB020_KilledLosesAtOnce suite.Abandon/TheDeadOwnersLeasesAreVoid", ""},
		{18, "janbjorge/pgqueuer#430, #431", "Heartbeats were buffered for longer than the retry timer: running jobs were handed out again.", "worker.TestB018_RenewalsOfEachLease", ""},
		{19, "janbjorge/pgqueuer#633", "At the limit of concurrency stale jobs could not be recovered, because they filled it.", "suite.Bugs/B019_PlaceOfADeadHolder", ""},
		{20, "graphile/worker#204, #222, #374", "Jobs of a crashed worker stayed locked for four hours.", "store/sqlite.TestB020_KilledLosesAtOnce suite.Abandon/AVanishedHolderIsCounted", ""},
		{21, "graphile/worker#254", "The connection died in the last attempt, and the named queue stayed locked.", "suite.Bugs/B021_CrashOnTheLastAttempt", ""},
		{22, "celery/kombu#337, celery/celery#2599, #4766, #5306", "A delay longer than the visibility timeout: executed once for each timeout.", "suite.Bugs/B022_DelayOfAHundredLeases", ""},
		{23, "sidekiq/sidekiq#6379", "Stopping one pool of a process pushed back jobs that another still ran.", "worker.TestB023_OneOfTwoPoolsStops", ""},
		{24, "sidekiq/sidekiq#3303, #3311", "A client library silently sent commands again after a reconnect.", "suite.Settle/R19_RepeatingAMoveIsANoOp suite.Lease/TwoSettlementsOfOneDelivery store/postgres.TestConnectionCutAnywhere", ""},
		{25, "riverqueue/river#199, #217", "A leader of the past believed that it had been elected again.", "", "not our design: nobody leads; every claim sweeps, and each sweep is guarded (B008)"},
	}
}

// bugsThatLostWork are about work that was gone.
func bugsThatLostWork() []bug {
	return []bug{
		{26, "sidekiq/sidekiq#4138, #4141", "The retry could not be stored for a moment, the acknowledgement after it could: the job was gone.", "worker.TestB026_OneCallFails internal/proof/powerloss.TestFailAtEveryCall store/postgres.TestConnectionCutAnywhere", ""},
		{27, "sidekiq/sidekiq#1322", "The update of a statistic timed out outside the retry guard: the job was gone.", "suite.Queues/CountsMatchARecount internal/proof/powerloss.TestFailAtEveryCall", ""},
		{28, "sidekiq/sidekiq#1831, rq/rq#2079", "A crash after the pop, or a pop that was interrupted: the ID was out of the queue and nobody had it.", "store/sqlite.TestKills internal/proof/powerloss.TestPowerLoss store/postgres.TestConnectionCutAnywhere", ""},
		{29, "sidekiq/sidekiq#5909", "A buffer in the client overflowed during an outage and dropped jobs silently.", "suite.Limits/MessagesOfACall store/sqlite.TestB060_ALockedStoreAnswersAll", ""},
		{30, "ThreeDotsLabs/watermill-redisstream#24", "An idle consumer was deleted while it still had messages.", "suite.Bugs/B030_TenOfADeadConsumer", ""},
		{31, "redis/redis#6199, #10756", "A stream was cut below what was pending: IDs without data.", "suite.Prune/NeverWhatWaits", ""},
		{32, "janbjorge/pgqueuer#693", "A stop left the rest of a batch marked as picked.", "suite.Bugs/B032_RestOfABatch worker.TestR16_UnstartedGoBack", ""},
		{33, "janbjorge/pgqueuer@9ffda0d", "A drain trusted a count that was a quarter of a second old: a job that was retried was stranded.", "internal/cli.TestR52_DrainEndsWhenOnlyFutureItemsRemain", "no count is kept aside: the end is asked of the store, whose counts change in the transaction of each message"},
		{34, "taskforcesh/bullmq#3059", "A close did not wait for jobs that had been fetched.", "suite.Races/B034_CloseDuringCalls worker.TestDrain", ""},
		{35, "celery/celery#9986", "Heartbeats stopped during a graceful stop: running work was delivered again.", "worker.TestRenewalWhileDraining", ""},
		{36, "redis/redis#4819, #6062, hibiken/asynq#373", "A failover, also one by hand, lost acknowledged writes.", "", withRedis},
		{37, "etcd-io/etcd#14370", "A single node could acknowledge before the write was durable.", "internal/proof/powerloss.TestPowerLoss internal/proof/faultdisk.TestSafeSettingsLoseNothing internal/proof/faultdisk.TestWeakSettingsAreFound", ""},
		{38, "Jepsen on NATS 2.12.1", "Flushed every two minutes by default; corruption of a minority spread.", "store/sqlite.TestCheckFindsCorruption store/sqlite.TestR27_DamagedMessageIsHandedOut", ""},
		{39, "SQLite (log reset), benbjohnson/litestream#1432", "Writing and checkpointing at once from two connections lost committed transactions.", "store/sqlite.TestB039_EngineIsNewEnough store/sqlite.TestB039_WriteAndCheckpoint", ""},
		{40, "golang/go#74831", "A query that was canceled while its rows were read returned rows of another.", "store/sqlite.TestB040_CanceledQueriesDoNotMixRows suite.Races/B042_CallersThatLeave", ""},
		{41, "rust-postgres#1334, #1342, erleans/pgo#131, stephenafamo/bob#661", "A transaction that was rolled back was reported as committed.", "store/sqlite.TestB041_TxUndoneBySQLite store/postgres.TestB041_CommitOfWhatWasGivenUp", ""},
		{42, "spacemeshos/go-spacemesh#6784", "A context that ended inside a transaction left a broken connection in the pool.", "suite.Races/B042_CallersThatLeave", ""},
		{43, "Podiom/Podiom#154, Dictionarry-Hub/profilarr#519", "Reading and then writing in one transaction failed at once, whatever the busy timeout.", "store/sqlite.TestB043_ContentionWaits", ""},
		{44, "confluentinc/parallel-consumer#826", "Frequent closing and rebalancing lost messages.", "broker/kafka.TestRebalances", ""},
		{45, "twmb/franz-go#57", "Commits at polling lost what a killed consumer had in hand.", "broker/kafka.TestRebalances broker/kafka.TestOnlyCrashesCount", ""},
		{46, "segmentio/kafka-go#711, #715", "The last commit of a generation was lost at closing.", "broker/kafka.TestSuite", ""},
		{47, "akka/alpakka-kafka#141", "After a rebalance offsets of partitions that were gone were committed.", "broker/kafka.TestLostMemberCommitsNothing broker/kafka.TestRebalances", ""},
		{48, "nats-io/nats-server#6538", "Unacknowledged messages were dropped after the last delivery.", "", withNATS},
		{49, "rabbitmq/rabbitmq-server#37, #3100, #12856", "The broker's own dead-lettering lost messages at a restart or on the way.", "", withRabbit},
	}
}

// bugsThatStalled are about wake-ups, stalls and starvation.
func bugsThatStalled() []bug {
	return []bug{
		{50, "timgit/pg-boss#850, #851, taskforcesh/bullmq#4729, graphile/worker#541, brianc/node-postgres#967", "The listener was dead and nothing noticed.", "worker.TestR17_LostWakeUp store/postgres.TestB050_DeadListenerIsReplaced", ""},
		{51, "oban-bg/oban#791, saurabhnanda/odd-jobs#42, ansible/awx#12999", "A notice that was too long failed the insert.", "suite.Bugs/B051_LargestOfEverything", ""},
		{52, "a report on LISTEN and NOTIFY, 2025", "Commits that notify queue up at one lock of the server.", "store/postgres.TestB052_CommitsDoNotNotify", ""},
		{53, "riverqueue/river#1251, #1255", "A call without a deadline hung for ever.", "worker.TestB053_ReceiveThatDoesNotListen worker.TestSettleThatDoesNotListen store/sqlite.TestB060_ALockedStoreAnswersAll store/postgres.TestB053_ConnectionThatIsMute", ""},
		{54, "graphile/worker 0.17, janbjorge/pgqueuer#553", "A loop gave up after errors while the process looked healthy.", "worker.TestB076_ReceiveFailsForAMinute worker.TestSettleNeverWorks internal/runner.TestTrouble", ""},
		{55, "riverqueue/river#1147, #1149", "A connection leaked when a later step failed.", "store/sqlite.TestB055_FailingCallsLeakNothing store/postgres.TestB055_FailingCallsLeakNothing", ""},
		{56, "timgit/pg-boss@f7a0374", "The limit was applied before the filter: a full group in front starved all others.", "suite.Bugs/B056_MuchThatIsNotDue suite.Streams/R43_ABlockedStreamStarvesNobody", ""},
		{57, "janbjorge/pgqueuer#684", "Recovered jobs lost their priority and starved behind fresh ones.", "suite.Bugs/B057_AbandonedKeepsItsPriority suite.Abandon/SuspectsComeByTurn", ""},
		{58, "rabbitmq/rabbitmq-server#12625, #16652", "Dead-lettering without a route piled up.", "", withRabbit},
		{59, "nats-io/nats-server#3361, #4112, #6093", "Pending acknowledgements stuck above their limit.", "", withNATS},
		{60, "Particular/ServiceControl#4780", "A cancel was swallowed in a batch: its callers waited for ever.", "store/sqlite.TestB060_ALockedStoreAnswersAll suite.Races/B042_CallersThatLeave store/sqlite.TestAFailingCallHoldsUpNobody store/postgres.TestB060_ALockedStoreAnswersAll", ""},
	}
}
