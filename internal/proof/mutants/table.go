package main

// The tests that have to find a mutant: those of the package that it is in.
// Patterns leave out what takes long and looks at something else.
var (
	engine    = finder{"worker", ""}
	waits     = finder{"policy", ""}
	leases    = finder{"store/sqlite", "^TestStore$/^(Lease|Settle|Abandon|Bugs|Races)$|^TestB0"}
	answers   = finder{"store/sqlite", "^TestStore$/^(Lease|Settle|Many)$"} // a race that needs one end of each message would wait for ever
	intake    = finder{"store/sqlite", "^TestStore$/^(Enqueue|Dedupe|Claim|Limits)$|^TestStore$/^Races$/^B06|^TestB06"}
	moves     = finder{"store/sqlite", "^TestStore$/^(Redrive|Resolve|Operations)$"}
	deadSets  = finder{"broker/redis/foreign", "^TestForms$|^TestRefused$"}
	follows   = finder{"store/sqlite", "^TestStore$/^Then$"}
	becomes   = finder{"store/sqlite", "^TestStore$/^Outcomes$"}
	crashes   = finder{"internal/proof/powerloss", "^TestR18_AMoveIsWholeAtEveryCrash$"}
	source    = finder{"broker", ""}
	clauses   = finder{"broker/brokertest", ""}
	mailboxes = finder{"broker/redis", "^TestSuite$|^TestR1|ByHand$|^TestFullServer$|^TestOneHolder"}
	rules     = finder{"worker", "^TestPolicy"}
	logs      = finder{"worker", "^TestLog"}
	loops     = finder{"redrive", "^TestR30_LoopCap$"}
	mover     = finder{"redrive", "^TestDamagedLettersAreNotSent$|^TestSend"}
	kafka     = finder{"broker/kafka", "^TestPrefix$|^TestS13_MissingTopicOfLetters$/^fake$"}
	tree      = finder{"mapreduce/worktree", "^TestCompareAndSwap$|^TestTheNextBeginsClean$|^TestResults$"}
	machine   = finder{"store/lifecycle", ""}
	model     = finder{"store/sqlite", "^TestModel$"}
	mapping   = finder{"internal/cli", "^TestMapOfAllFailures$"}
	alone     = finder{"broker/kafka", "^TestPoisonIsIsolated$|^TestSuspectsOfOnePartitionAtATime$"}
	ranges    = finder{"store/postgres", "^TestForgottenClaim|^TestPausedWhileAClaimWaits$|^TestStore$/^(Lease|Many)$"}
	// a commit that fails needs no luck, a crash between reply and commit does
	faults = finder{"internal/proof/powerloss", "^TestFailAtEveryCall$/^write$"}
)

// sqlEnqueue is the migration with the functions that enqueue by SQL.
const sqlEnqueue = "store/postgres/migrations/0007_enqueue.up.sql"

// table holds, below 41, some of the forty defects that a harness for systems of this
// kind has to find; those from 41 on no test saw once. An old text is as short as it
// can be, so that it stands through changes around it.
var table = []mutant{
	{
		number: 1, name: "drop lease number from complete",
		breaks: "a holder whose lease is over completes the message under the lease of the next one",
		edits: []edit{{"store/engine/settle.go", "	steps, err := s.held(", `	if m != nil && st.Verb == nixie.Complete {
		st.Delivery.Lease.Number = m.Number
	}
	steps, err := s.held(`}},
		tests: leases,
	},
	{
		number: 2, name: "drop lease number from fail",
		breaks: "a holder whose lease is over retries, releases or buries the message under the lease of the next one",
		edits: []edit{{"store/engine/settle.go", "	steps, err := s.held(", `	if m != nil && st.Verb != nixie.Complete {
		st.Delivery.Lease.Number = m.Number
	}
	steps, err := s.held(`}},
		tests: leases,
	},
	{
		number: 3, name: "drop lease number from extend",
		breaks: "a holder whose lease is over is told that it was extended, and extends the lease of the next one",
		edits:  []edit{{"store/engine/extend.go", "m.Number != d.Lease.Number || ", ""}},
		tests:  leases,
	},
	{
		number: 4, name: "ignore zero rows affected",
		breaks: "a message that was settled before is completed once more, with success as the answer",
		edits:  []edit{{"store/sqlite/complete.go", "added == 0 ||", "added < 0 ||"}},
		tests:  answers,
	},
	{
		number: 5, name: "rescue without state guard",
		breaks: "when a lease ends, messages of it that were completed long ago are queued again",
		edits:  []edit{{"store/sqlite/sql/unsettled_members.sql", "and not exists (select 1 from log where log.pos = m.pos)", ""}},
		tests:  leases,
	},
	{
		number: 7, name: "crashes not counted",
		breaks: "a holder that vanishes leaves no trace, so that a killer of holders goes on for ever",
		edits:  []edit{{"store/lifecycle/message.go", "m.Crashes++", ""}},
		tests:  machine,
	},
	{
		number: 8, name: "refund also deliveries",
		breaks: "a release gives back the delivery with the attempt, so that a loop of releases never ends",
		edits: []edit{{"store/lifecycle/message.go", "m.Attempts -= refund",
			"m.Attempts, m.Deliveries = m.Attempts-refund, m.Deliveries-refund"}},
		tests: machine,
	},
	{
		number: 9, name: "release burns an attempt",
		breaks: "what is given back before it started loses an attempt each time",
		edits:  []edit{{"store/lifecycle/message.go", "m.Attempts -= refund\n", "_ = refund\n"}},
		tests:  machine,
	},
	{
		number: 12, name: "heartbeats stop during drain",
		breaks: "a worker that waits for its last handlers lets their leases end",
		edits: []edit{{"worker/renew.go", "w.renew(ctx)", `select {
			case <-w.quit:
			default:
				w.renew(ctx)
			}`}},
		tests: engine,
	},
	{
		number: 14, name: "drain trusts a cached count",
		breaks: "a worker that had nothing in hand when the stop came does not wait for the receive under way and holds what that brings",
		edits: []edit{
			{"worker/drain.go", "w.draining = true", "w.draining = true\n\tnothing := w.inHand == 0"},
			{"worker/drain.go", "all := make(chan struct{})", "if nothing {\n\t\treturn true\n\t}\n\tall := make(chan struct{})"},
		},
		tests: engine,
	},
	{
		number: 15, name: "fetched batch dropped at shutdown",
		breaks: "what a receive brings after the stop is neither run nor given back",
		edits:  []edit{{"worker/receive.go", "if len(got) > 0 {", "if len(got) > 0 && ctx.Err() == nil {"}},
		tests:  engine,
	},
	{
		number: 16, name: "synchronous NORMAL",
		breaks: "commits are acknowledged that the next loss of power takes back",
		edits:  []edit{{"store/sqlite/conn.go", "pragma synchronous = full", "pragma synchronous = normal"}},
		tests:  crashes,
	},
	{
		number: 18, name: "reply before commit",
		breaks: "callers are told of success while the transaction is still open",
		edits: []edit{
			{"store/sqlite/committer.go", "done: make(chan error, 1)", "done: make(chan error, 2)"},
			{"store/sqlite/committer.go", `if err := c.run("commit"); err != nil {`, `for _, w := range calls {
		w.done <- nil
	}
	if err := c.run("commit"); err != nil {`},
		},
		tests: faults,
	},
	{
		number: 22, name: "dedupe by select-then-insert",
		breaks: "whether a key is free is looked up before the transaction that takes it: of several producers at once each makes a " +
			"message",
		edits: []edit{{"store/sqlite/enqueue.go",
			"EnqueuePlain(context.Context, []nixie.Message) ([]nixie.Receipt, error) {\n\treturn nil, nil\n",
			`EnqueuePlain(ctx context.Context, messages []nixie.Message) ([]nixie.Receipt, error) {
	const whose = " from dedupe where key = ?1 and queue = (select n from queue where name = ?2)"
	var free []*nixie.Message
	err := d.read(ctx, func(c conn) error {
		for i := range messages {
			taken, _ := c.number("select count(*)"+whose, messages[i].DedupeKey, messages[i].Queue)
			if taken == 0 && messages[i].DedupeKey != "" {
				free = append(free, &messages[i])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return engine.Within(func(ctx context.Context, how engine.How, f func(engine.Tx) error) error {
		return d.Update(ctx, how, func(tx engine.Tx) error {
			for _, m := range free {
				if err := tx.(*verb).run("delete"+whose, m.DedupeKey, m.Queue); err != nil {
					return err
				}
			}
			return f(tx)
		})
	}).Enqueue(ctx, messages...)
`}},
		tests: intake,
	},
	{
		number: 23, name: "key freed by non-holder",
		breaks: "a message that lost its dedupe key frees it for the newer one that holds it",
		edits:  []edit{{"store/sqlite/enqueue.go", "where queue = ? and key = ? and pos = ?", "where queue = ? and key = ? and pos <> -?"}},
		tests:  intake,
	},
	{
		number: 24, name: "dead letter written after acknowledgement",
		breaks: "a record counts as done with while its letter is still on its way to the broker, which may not take it",
		edits: []edit{{"broker/kafka/publish.go", "\tcase <-ctx.Done():\n",
			"\tcase <-ctx.Done():\n\tdefault:\n\t\treturn make([]error, len(s.records))\n"}},
		tests: kafka,
	},
	{
		number: 25, name: "audit outside the transaction",
		breaks: "a crash after the commit leaves a move of which the audit knows nothing",
		edits: []edit{
			{"store/sqlite/audit.go", "row := t.added.add(toAudit)", "t.after = append(t.after, func() {\n\trow := t.added.add(toAudit)"},
			{"store/sqlite/audit.go", "return t.added.end(row)", "_ = t.added.end(row)\n\t_ = t.added.flush()\n\t})\n\treturn nil"},
		},
		tests: crashes,
	},
	{
		number: 26, name: "payload truncated at 64 KiB",
		breaks: "the end of a long body is cut off before its hash is taken, so that no damage shows",
		edits: []edit{
			{"store/engine/enqueue.go", "nixie.HashBody(messages[i].Body)",
				"nixie.HashBody(messages[i].Body[:min(len(messages[i].Body), 64<<10)])"},
			{"store/sqlite/enqueue.go", "bytes(m.Body)", "bytes(m.Body[:min(len(m.Body), 64<<10)])"},
		},
		tests: intake,
	},
	{
		number: 29, name: "backoff overflow negative",
		breaks: "the wait after many failures overflows and becomes the shortest one",
		edits: []edit{
			{"policy/backoff.go", "float64(b.Base) * math.Pow(b.Factor, float64(n-1))", "b.Base << (n - 1)"},
			{"policy/backoff.go", "if grown < float64(b.longest()) {", "if grown < b.longest() {"},
			{"policy/backoff.go", "return time.Duration(grown)", "return grown"},
		},
		tests: waits,
	},
	{
		number: 31, name: "LIMIT before the eligibility filter",
		breaks: "messages that must not be handed out fill the page, and those behind them starve",
		edits: []edit{{"store/sqlite/sql/claim_new.sql",
			"from message\nwhere pos > +:cursor and pos <= +:last and own = 0\norder by pos\nlimit :limit + 0",
			"from (select * from message where pos > +:cursor and pos <= +:last order by pos limit :limit + 0)\nwhere own = 0"}},
		tests: intake,
	},
	{
		number: 34, name: "redrive without the unique row of operation and item",
		breaks: "an operation that is run again redrives once more what it redrove before",
		edits:  []edit{{"store/lifecycle/item.go", "case i != ItemPending:", "case i == ItemFailed:"}},
		tests:  moves,
	},
	{
		number: 37, name: "Kafka commits highest instead of contiguous",
		breaks: "an offset that finishes early commits those before it that have not",
		edits:  []edit{{"broker/kafka/prefix.go", "if at > 0 {\n", "if p.next = max(p.next, e.offset+1); at > 0 {\n"}},
		tests:  kafka,
	},
	{
		number: 38, name: "windows of suspects do not halve",
		breaks: "a record that kills its consumers is never alone, and takes many of them with it",
		edits:  []edit{{"broker/kafka/partition.go", "lease.GroupSize(parallel, s.crashes)", "lease.GroupSize(parallel, 1)"}},
		tests:  alone,
	},
	{
		number: 39, name: "suspects of all partitions at a time",
		breaks: "the first record of another partition is convicted with the killer",
		edits:  []edit{{"broker/kafka/receive.go", "suspect == nil || suspect == p ||", "suspect == nil || suspect != nil ||"}},
		tests:  alone,
	},
	{
		number: 41, name: "damaged letter sent to a broker",
		breaks: "a letter whose body does not fit its hash goes to a broker, where no reader sees the damage",
		edits:  []edit{{"redrive/send.go", "len(l.Damage) > 0 {", "false {"}},
		tests:  mover,
	},
	{
		number: 42, name: "letter of a record that is no longer ours",
		breaks: "a holder that lost a record meanwhile publishes its letter all the same, and so does the next holder",
		edits:  []edit{{"broker/settle.go", "asked[n].err = err", "_, _ = n, err"}},
		tests:  source,
	},
	{
		number: 51, name: "renewed lease counted from the answer",
		breaks: "a worker that renews slowly goes on with a message that another worker holds by then",
		edits:  []edit{{"worker/renew.go", "int64(now + w.c.Renewal.For)", "int64(w.since(w.c.Clock()) + w.c.Lease)"}},
		tests:  engine,
	},
	{
		number: 52, name: "refund of what took no attempt",
		breaks: "an abandoned record that is given back gets an attempt that it did not spend",
		edits:  []edit{{"lease/patience.go", "!judged && (st.Verb == nixie.Release", "(st.Verb == nixie.Release"}},
		tests:  source,
	},
	{
		number: 53, name: "a crash spends an attempt",
		breaks: "messages that were in hand at kills by chance run out of attempts",
		edits:  []edit{{"store/lifecycle/message.go", "m.Crashes++", "m.Crashes++\n\t\tm.Attempts++"}},
		tests:  machine,
	},
	{
		number: 54, name: "a message in hand with a killer is convicted",
		breaks: "messages that were in hand at three kills by chance are poison",
		edits:  []edit{{"policy/config.go", "(d.AbandonedAlone || d.Crashes >= c.MaxCrashes+sharedCrashes)", "sharedCrashes > 0"}},
		tests:  waits,
	},
	{
		number: 55, name: "groups of suspects do not halve",
		breaks: "a killer never stands alone, and takes the messages of its group along each time",
		edits:  []edit{{"lease/suspects.go", "return max(1, parallel>>min(max(crashes, 0), maxHalvings))", "return max(1, parallel)"}},
		tests:  leases,
	},
	{
		number: 56, name: "survivors stay suspects",
		breaks: "what once was in hand at a kill runs in small groups for ever",
		edits:  []edit{{"store/lifecycle/message.go", "m.Crashes, m.Alone = 0, false", "m.Alone = false"}},
		tests:  machine,
	},
	{
		number: 60, name: "policy of a queue that is looked up once",
		breaks: "who changes the policy of a queue changes nothing for the workers that run",
		edits:  []edit{{"worker/policies.go", "p.kept.Load() != nil && now.Sub(p.lookedAt) < policyMaxAge", "p.kept.Load() != nil"}},
		tests:  rules,
	},
	{
		number: 61, name: "line in the log for every failing call",
		breaks: "a store that is away for an hour fills the log",
		edits: []edit{{"worker/eventlog.go", "if slices.Contains(s.codes, code) {",
			"if slices.Contains(s.codes, code) && s.events < 0 {"}},
		tests: logs,
	},
	{
		number: 62, name: "redrive without its cap",
		breaks: "what dies after each redrive is redriven for ever",
		edits:  []edit{{"redrive/redrive.go", "MaxRedrives: e.c.MaxRedrives, ExpiresIn", "ExpiresIn"}},
		tests:  loops,
	},
	{
		number: 71, name: "member of another batch taken for current",
		breaks: "who has a claim that the server forgot settles what the next holder has, if the call is about both",
		edits:  []edit{{"store/postgres/ranges.go", "return in.Pos != 0 && in.Batch != m.batch", "return false"}},
		tests:  ranges,
	},
	{
		number: 72, name: "settings not read again once the cursor is locked",
		breaks: "a queue that is paused while a claim waits for the cursor hands out messages all the same",
		edits: []edit{{"store/postgres/sql/claim_unordered.sql", "q.settings = :settings::jsonb and not q.paused",
			":settings::jsonb is not null"}},
		tests: ranges,
	},
	{
		number: 73, name: "members not counted again once their batch is locked",
		breaks: "a message of a batch that was settled meanwhile is settled once more",
		edits:  []edit{{"store/postgres/ranges.go", "|| still[i] < len(b.members)", "|| still[i] < 0"}},
		tests:  ranges,
	},
	{
		number: 74, name: "merge without compare-and-swap",
		breaks: "a merge that another process made meanwhile is lost",
		edits:  []edit{{"mapreduce/worktree/merge.go", `"update %s %s %s\n", j.ref(), to, from)`, `"update %s %s\n", j.ref(), to)`}},
		tests:  tree,
	},
	{
		number: 75, name: "worktree taken again in the middle of a rebase",
		breaks: "an attempt begins in what another one left half done",
		edits:  []edit{{"mapreduce/worktree/attempt.go", "; ok && t.reset", `; (ok || own != "") && t.reset`}},
		tests:  tree,
	},
	{
		number: 76, name: "result not kept before the merge",
		breaks: "an item is merged and its result is not there",
		edits:  []edit{{"mapreduce/worktree/merge.go", "t.keepResult(head, result)", "t.keepResult(head, nil)"}},
		tests:  tree,
	},
	{
		number: 77, name: "merge without the check of the commit",
		breaks: "what an item changed and did not commit is lost in silence",
		edits:  []edit{{"internal/runner/attempt.go", "a.workplace.Check(ctx); err != nil", "error(nil); err != nil"}},
		tests:  mapping,
	},
	{
		number: 78, name: "worktree of the last failure forgotten with the earlier ones",
		breaks: "a letter names a worktree that is not there",
		edits:  []edit{{"mapreduce/worktree/kept.go", "k.Item != item || k.Lease >= lease", "k.Item != item || k.Lease > lease"}},
		tests:  mapping,
	},
	{
		number: 79, name: "another actor in the audit of the reference",
		breaks: "the audit of a store says of a verdict that its worker did it",
		edits:  []edit{{"store/memory/settle.go", "q.record(now, e.Actor, e.Event", "q.record(now, s.owner, e.Event"}},
		tests:  model,
	},
	{
		number: 80, name: "a redriven letter keeps its position among those that passed it",
		breaks: "a message goes before what was there when it died, out of order and unmarked",
		edits:  []edit{{"store/lifecycle/letter.go", "appends = ordered && !l.Blocks", "appends = ordered && l.Blocks"}},
		tests:  machine,
	},
	{
		number: 81, name: "a letter that a broker took can be worked on here",
		breaks: "a message runs twice: here and where it was sent",
		edits:  []edit{{"store/lifecycle/letter.go", "err = m.End(store.OnCancel, now)", "err = nil"}},
		tests:  machine,
	},
	{
		number: 82, name: "a dead head blocks whom an operator let go",
		breaks: "a stream stands still after an operator let it go",
		edits:  []edit{{"store/lifecycle/letter.go", "set.Blocks() && !e.Frees", "set.Blocks()"}},
		tests:  machine,
	},
	{
		number: 83, name: "no message may pass a dead head",
		breaks: "a message that an operator let pass waits behind a dead letter all the same",
		edits:  []edit{{"store/lifecycle/stream.go", "strict && (blocked || due > now)", "strict && due > now"}},
		tests:  machine,
	},
	{number: 84, name: "a retry without a delay goes back uncounted", breaks: "a message that always fails runs for ever", tests: clauses,
		edits: []edit{{"broker/settle.go", "(st.Delay > 0 || st.Verb == nixie.Release)", "true"},
			{"broker/settle.go", "as := Failed\n", "as := Failed\n\t\t\tif v.st.Delay <= 0 {\n\t\t\t\tas = Unused\n\t\t\t}\n"}}},
	{number: 85, name: "a judged record goes back to the broker", breaks: "a record is judged for ever, and never runs", tests: clauses,
		edits: []edit{{"broker/settle.go", "!st.Delivery.Abandoned && st.Delay <= f.MaxDelay && (", "(st.Delivery.Abandoned || "},
			{"broker/settle.go", "as := Failed\n", "as := Failed\n\t\t\tif v.st.Delivery.Abandoned {\n\t\t\t\tas = Unused\n\t\t\t}\n"}}},
	{number: 86, name: "counted deliveries are attempts", breaks: "neighbours of a killer become letters as exhausted", tests: clauses,
		edits: []edit{{"broker/receive.go", "r.Crashes, r.Alone = r.PriorDeliveries,", "_, _ = r.PriorDeliveries,"}}},
	{number: 87, name: "retries go back though the channel delays records", breaks: "a letter forgets failures and steps", tests: clauses,
		edits: []edit{{"broker/stage.go", "return len(f.Stages) > 0 || f.MaxPublishDelay > 0", "return len(f.Stages) > 0"}}},
	{number: 88, name: "what waits in hand is not renewed", breaks: "another consumer gets it, and it runs twice", tests: clauses,
		edits: []edit{{"broker/renew.go", "return s.extendUndelivered(ctx, lease)", "return nil"}}},
	{number: 89, name: "one call for each record that goes back", breaks: "a drain takes a round trip for each record", tests: clauses,
		edits: []edit{{"broker/settle.go", "back = append(back, Return{v.item.record, v.st.Delay, as, patience})",
			"v.err = s.c.Driver.Nack(ctx, []Return{{v.item.record, v.st.Delay, as, patience}})[0]"}}},
	{number: 90, name: "a letter hides what it does not know", breaks: "four failures look like one", tests: clauses,
		edits: []edit{{"broker/message.go", "i.remember(nil, m.Attempts)", "i.remember(nil, 0)"}}},
	{number: 91, name: "any token settles a record in Redis", breaks: "a late worker acknowledges what another one has", tests: mailboxes,
		edits: []edit{{"broker/redis/mailbox.lua", "mine[i] = token == ARGV[from + (i - 1) * step + 1]", "mine[i] = token ~= false"}}},
	{number: 92, name: "Redis counts no crash", breaks: "a killer kills for ever", tests: mailboxes,
		edits: []edit{{"broker/redis/mailbox.lua", "written(deliveries + 1, crashes + 1,", "written(deliveries, crashes,"}}},
	{number: 93, name: "Redis forgets releases", breaks: "a loop of releases never ends", tests: mailboxes,
		edits: []edit{{"broker/redis/mailbox.lua", "releases = releases + 1", "releases = releases"}}},
	{number: 94, name: "a mailbox that is made again numbers from 1", breaks: "a new record overwrites an old one", tests: mailboxes,
		edits: []edit{{"broker/redis/mailbox.lua", "'@sent', last_sent()", "'@sent', 0"}}},
	{number: 95, name: "a full Redis takes nothing back", breaks: "leases end under their workers when memory is full", tests: mailboxes,
		edits: []edit{{"broker/redis/mailbox.lua", "	redis.call('ZREM', held, '')\n", ""}}},
	{number: 96, name: "what follows a death is published before the letter", breaks: "a caller hears of a death that nothing tells of",
		tests: clauses,
		edits: []edit{{"broker/settle.go", "		s.storeOutcomes(ctx, letters, retries, now)\n", ""},
			{"broker/settle.go", "s.follow(ctx, stored) // the letter comes first",
				"s.follow(ctx, stored)\n\t\ts.storeOutcomes(ctx, letters, retries, now)"}}},
	{number: 97, name: "what follows is enqueued without its settlement", breaks: "a late worker answers once more", tests: follows,
		edits: []edit{{"store/engine/settle.go", "	if err != nil {\n\t\treturn err\n\t}\n\tif err := s.apply(",
			"	if err != nil {\n\t\ts.follows = append(s.follows, follow{then: st.Then})\n\t\treturn err\n\t}\n\tif err := s.apply("}}},
	{number: 98, name: "PostgreSQL enqueues what follows refused settlements", breaks: "a late worker answers once more",
		tests: finder{"store/postgres", "^TestStore$/^Then$"},
		edits: []edit{{"store/engine/settle.go", "	if err != nil {\n\t\treturn err\n\t}\n\tif err := s.apply(",
			"	if err != nil {\n\t\ts.follows = append(s.follows, follow{then: st.Then})\n\t\treturn err\n\t}\n\tif err := s.apply("}}},
	{number: 99, name: "a closed queue takes what follows", breaks: "messages lie in a queue that was closed", tests: follows,
		edits: []edit{{"store/engine/settle.go", "q != nil {", "q != nil && false {"},
			{"store/engine/enqueue.go", "	if err := lifecycle.Admits(q.Settings, q.Name); err != nil {\n" +
				"\t\treturn nixie.Receipt{}, err\n\t}\n", ""}}},
	{number: 100, name: "each generation has the same keys", breaks: "a redriven message is answered by nothing",
		tests: finder{"broker", "^TestKeysOfWhatFollows$"},
		edits: []edit{{"broker/follow.go", "d.ID, d.Generation)", "d.ID, 1)"}}},
	{number: 101, name: "a failed attempt is followed like a success", breaks: "a failure and a success are both reported", tests: engine,
		edits: []edit{{"worker/decide.go", "if st.Verb != nixie.Complete || len(d.Tracking.Then) == 0 {", "if len(d.Tracking.Then) == 0 {"},
			{"worker/decide.go", "	return c.ask(d, f, ended)\n}\n\n// attempt",
				"	return c.followed(c.ask(d, f, ended), started, ended)\n}\n\n// attempt"}}},
	{number: 102, name: "a redriven job leaves no mark", breaks: "a redrive whose answer was lost sends a job twice", tests: deadSets,
		edits: []edit{{"broker/redis/foreign/back.lua", "if answer == \"sent\" then", "if false then"}}},
	{number: 103, name: "a job goes to any job queue", breaks: "the worker of another system gets a job that it cannot read",
		tests: deadSets,
		edits: []edit{{"broker/redis/foreign/publish.go", "h.Name == headerSystem && value != p.format", "false"}}},
	{number: 104, name: "a watchdog that beats itself", breaks: "a process that is stuck is never ended",
		tests: finder{"loop", "^TestR50_Health"},
		edits: []edit{{"loop/watchdog.go", "	now := g.c.Clock()\n", `	for _, m := range g.members {
		m.own.beat()
		for _, s := range m.handlers {
			s.beat()
		}
	}
	now := g.c.Clock()
`}}},
	{number: 105, name: "what follows is enqueued after the transaction", breaks: "a power failure loses an answer",
		tests: finder{"loop", "^TestKillTable$/^sqlite$"},
		edits: []edit{{"store/engine/ending.go", "append(list, f.then...)", "append(list, f.then[:0]...)"},
			{"store/sqlite/leases.go", "	s.owner.progress.settled(settlements, errs)\n", `	for i := range settlements {
		if errs[i] == nil && len(settlements[i].Then) > 0 {
			_, _ = s.Enqueue(ctx, settlements[i].Then...)
		}
	}
	s.owner.progress.settled(settlements, errs)
`}}},
	{number: 106, name: "Redis forgets the keys of answers", breaks: "a request is answered twice after a crash",
		tests: finder{"broker/redis", "^TestOnce$"},
		edits: []edit{{"broker/redis/mailbox.lua", "key ~= '' and redis.call('ZSCORE', seen, key)", "false"}}},
	{number: 107, name: "a way of notices is looked at for one step", breaks: "notices of deaths go round for ever",
		tests: finder{"store/memory", "^TestStore$/Notice"},
		edits: []edit{{"store/lifecycle/notice.go", "len(way) <= len(others)+1; at", "len(way) <= 1; at"}}},
	{number: 108, name: "a notice of a death has a cap of attempts", breaks: "a notice dies of the handler that it waits for",
		tests: finder{"policy", "^TestNoticesHaveNoCap$"},
		edits: []edit{{"policy/case.go", "c.MaxAttempts, c.MaxDeliveries, c.RetryBudget = none, none, none",
			"c.MaxDeliveries, c.RetryBudget = none, none"}}},
	{number: 118, name: "try that leaves a trace", breaks: "a letter is not as it was before a fix was tried on its copy",
		tests: finder{"internal/cli", "^TestTry$/^sqlite$"},
		edits: []edit{{"office/try.go", "	var queues []Count\n", `	o.store.Resolve(ctx, []store.Resolution{{
		Letter: letters[0].ID, Event: store.OnNote, Actor: o.actor, Reason: command}})
	var queues []Count
`}, {"office/try.go", "	\"github.com/nixie-go/nixie\"\n",
			"	\"github.com/nixie-go/nixie\"\n	\"github.com/nixie-go/nixie/store\"\n"}}},
	{number: 172, name: "a regroup reads no outputs", breaks: "an older letter stays in the group of a closing line",
		tests: finder{"internal/cli", "^TestOneLetterHasOneGroup$"},
		edits: []edit{{"policy/older.go", "SignatureOf(readAnew(named), &l.Message)", "SignatureOf(named, &l.Message)"}}},
	{number: 173, name: "a regroup moves selected letters", breaks: "a letter that dies of its old cause again has a new failure",
		tests: finder{"store/memory", "^TestStore$/^Regroup$"},
		edits: []edit{{"store/lifecycle/letter.go", "	case selected:", "	case selected && to == nil:"}}},
	{number: 152, name: "a code is masked", breaks: "errors that need different repairs are one group",
		tests: finder{"policy", "^TestCausesAreTold$"},
		edits: []edit{{"policy/codes.go", "	if n.isSQLState(code) || isResult(code) {", "	if n.isSQLState(code) {"}}},
	{number: 153, name: "names of fields are masked", breaks: "two missing fields are one group",
		tests: finder{"policy", "^TestCausesAreTold$"},
		edits: []edit{{"policy/names.go", "isIn(beforeName, n.lastWord()) || ", ""}}},
	{number: 154, name: "the outermost error of a chain counts", breaks: "a cause is as many groups as there are ways to it",
		tests: finder{"policy", "^TestStacks$"},
		edits: []edit{{"policy/site.go", "				b.begin(kind)",
			"				if first {\n					b.begin(kind)\n				}"}}},
	{number: 155, name: "a try is counted as an attempt", breaks: "an outage buries what only tried whether it is over",
		tests: finder{"worker", "^TestTriesAreFree$"},
		edits: []edit{{"policy/decide.go", "waiver: nixie.WaiveTry}, !over", "waiver: nixie.NoWaiver}, !over"}}},
	{number: 157, name: "min_age keeps what time does not heal", breaks: "bad messages are run for 15 minutes",
		tests: finder{"policy", "^TestGivingUpProperties$"},
		edits: []edit{{"policy/decide.go", "if c.MinAge == none || !Heals(q.f) {", "if c.MinAge == none {"}}},
	{number: 160, name: "told to stop is ignored", breaks: "three deploys make an innocent long job poison",
		tests: finder{"store/memory", "^TestStore$/^Stopping"},
		edits: []edit{{"lease/stops.go", "if !told || p.Stops >= MaxStops {", "if true {"}}},
	{number: 161, name: "stops are free for ever", breaks: "a message that hangs in each stop is never found",
		tests: finder{"store/memory", "^TestStore$/^Stopping"},
		edits: []edit{{"lease/stops.go", "if !told || p.Stops >= MaxStops {", "if !told {"}}},
	{number: 162, name: "a worker tells of its stop after the drain", breaks: "who is killed while it drains counts as crashed",
		tests: finder{"worker", "^TestStopIsToldFirst$"},
		edits: []edit{{"worker/worker.go",
			"	if asked.Err() != nil {\n		w.tellStopping(true)\n	}\n	idle := w.drain(&receiver, &handlers)\n",
			"	idle := w.drain(&receiver, &handlers)\n	if asked.Err() != nil {\n		w.tellStopping(true)\n	}\n"}}},
	{number: 163, name: "a told member of a group suspects its records", breaks: "three deploys make innocent records letters",
		tests: finder{"broker/kafka", "^TestSuite$/^fake$/^AToldConsumer"},
		edits: []edit{{"broker/kafka/partition.go", "if told && s.stops < lease.MaxStops {", "if false {"}}},
	{number: 110, name: "a sender is told of each failure", breaks: "an error and a result both answer one request",
		tests: finder{"loop", "^TestMainLoop"},
		edits: []edit{{"loop/main_loop.go", "case st.Burial == nil:", "case st.Verb == nixie.Release:"}}},
	{number: 111, name: "a handle is never finalized", breaks: "a message that is done is answered once more",
		tests: finder{"loop", "^TestR4"},
		edits: []edit{{"loop/message.go", "m.finalized = finalize && err == nil", "m.finalized = m.finalized && err == nil"}}},
	{number: 120, name: "outcome on the wrong item", breaks: "a redrive is told the end of another letter that it moved",
		tests: becomes,
		edits: []edit{{"store/sqlite/sql/item_ends.sql", "letter = :letter", "letter >= :letter"}}},
	{number: 121, name: "a note takes a letter over", breaks: "the end of a letter is not told to the redrive that moved it",
		tests: finder{"store/memory", "^TestStore$/^Outcomes$"},
		edits: []edit{{"store/lifecycle/letter.go", "if r.Event == store.OnNote {",
			"if r.Event == store.OnNote {\n\t\tl.Operation = r.Operation"}}},
	{number: 122, name: "giving back asks for the ID only", breaks: "a job that used an ID again is overwritten by an old letter",
		tests: finder{"broker/redis/foreign", "^TestMeanwhile$"},
		edits: []edit{{"broker/redis/foreign/publish.go", "if found[i].died(&r.origin) {", "if r.origin.System != \"\" {"}}},
	{number: 123, name: "the step asks for the ID only", breaks: "a job that changed after the look is overwritten",
		tests: finder{"broker/redis/foreign", "^TestChangedMeanwhile$"},
		edits: []edit{{"broker/redis/foreign/back.lua", "or redis.sha1hex(stored or \"\") ~= sum", ""}}},
	{number: 124, name: "the key chooses the partition of a redrive", breaks: "a record changes the partition of its key",
		tests: finder{"broker/kafka", "^TestRedriveToTheOriginalPartition$/fake"},
		edits: []edit{{"redrive/destination.go", "!r.ByKey && *at >= 0", "!r.ByKey && *at >= 0 && false"}}},
	{number: 156, name: "a try counts as an attempt", breaks: "the messages that try an open breaker die of it",
		tests: finder{"store/memory", "^TestStore$/^Patience$"},
		edits: []edit{{"lease/patience.go", "(st.Verb == nixie.Release || st.Waiver == nixie.WaiveTry)", "st.Verb == nixie.Release"}}},
	{number: 125, name: "a pointer is a tombstone", breaks: "a letter whose body is elsewhere is sent with a null one",
		tests: finder{"broker", "^TestPointers$"},
		edits: []edit{{"broker/original.go", "case !copied:", "case !copied && false:"}}},
	{number: 165, name: "a claim by range keeps the keys of scope queued", breaks: "news that come while a message runs are dropped",
		tests: finder{"store/sqlite", "^TestStore$/^Dedupe$"},
		edits: []edit{{"store/sqlite/enqueue.go", "range got.members {", "range got.members[:0] {"}}},
	{number: 166, name: "a cancel waits for the renewal", breaks: "a command goes on for a third of a lease after its cancel",
		tests: finder{"worker", "^TestCancelIsSoon$"},
		edits: []edit{{"worker/renew.go", "	w.lookSoon(w.since(now))\n", ""}}},
	{number: 200, name: "a queue has two repositories", breaks: "two jobs of one name run each other's items",
		tests: finder{"mapreduce/worktree", "^TestJobsOfOneName$"},
		edits: []edit{{"mapreduce/worktree/find.go", "other.Queue() == simple &&", "other.Queue() == \"\" &&"}}},
	{number: 201, name: "a copy is a repository that was moved", breaks: "the job of a repository is taken over by its copy",
		tests: finder{"mapreduce/worktree", "^TestACopyIsAnotherRepository$"},
		edits: []edit{{"mapreduce/worktree/find.go", "if !j.gone() {", "if j.gone() {"}}},
	{number: 202, name: "a mirror keeps what was redriven", breaks: "another program runs an item that runs already",
		tests: finder{"internal/cli", "^TestMapMirror$"},
		edits: []edit{{"internal/letterfile/mirror.go", "if still[item] {", "if !still[item] {"}}},
	{number: 203, name: "what an earlier run of a claim left stays", breaks: "an item that is merged has a worktree of a failure",
		tests: finder{"internal/cli", "^TestMapInClaim$"},
		edits: []edit{{"mapreduce/mapreduce.go", "a.tree.Lease+1)", "a.tree.Lease)"}}},
	{number: 240, name: "SQL asks for no limits", breaks: "a program of another language keeps a body that no worker takes",
		tests: finder{"store/postgres", "^TestSQLEnqueueRefusals$"},
		edits: []edit{{sqlEnqueue, "octet_length(body) > 16777216", "octet_length(body) < 0"}}},
	{number: 241, name: "SQL notifies outside the transaction", breaks: "workers hear of what is rolled back, and not of what is there",
		tests: finder{"store/postgres", "^TestSQLEnqueueWakes$"},
		edits: []edit{{sqlEnqueue, "ignored := pg_notify(schema_name, 'sql ' || names[1]) is null;",
			"null; -- another process tells them later"}}},
	{number: 242, name: "SQL notifies though no process listens", breaks: "the commits of all writers wait for each other for nothing",
		tests: finder{"store/postgres", "^TestSQLEnqueueWakes$"},
		edits: []edit{{sqlEnqueue, "if pg_try_advisory_lock(hashtext('nixie listen ' || schema_name), 0) then", "if false then"}}},
	{number: 243, name: "SQL reads a queue before its lock", breaks: "a message of a strict queue is in no stream",
		tests: finder{"store/postgres", "^TestSQLEnqueueWaitsForAnOrder$"},
		edits: []edit{{sqlEnqueue, "    ignored := pg_advisory_xact_lock_shared(hashtext(schema_name), queue_n) is null;\n", ""}}},
	{number: 244, name: "SQL draws a position before the stream is locked", breaks: "a stream comes in another order than it was added to",
		tests: finder{"store/postgres", "^TestSQLEnqueueWaitsForAStream$"},
		edits: []edit{
			{sqlEnqueue, "  while in_stream loop\n", "  own_pos := nextval('@.position');\n  while in_stream loop\n"},
			{sqlEnqueue, "  own_pos := nextval('@.position'); --", "  --"}}},
	{number: 220, name: "a redrive takes a death out of the list", breaks: "what failed before a redrive cannot be told any more",
		tests: finder{"store/memory", "^TestStore$/^Lists$"},
		edits: []edit{{"store/memory/ended.go", "dead && last && f.Generation < latest", "dead && last && f.Generation < 0"}}},
	{number: 221, name: "SQLite forgets earlier deaths", breaks: "its list of what ended differs from that of other stores",
		tests: finder{"store/sqlite", "^TestStore$/^Lists$"},
		edits: []edit{{"store/sqlite/sql/list_ended.sql", "where decision in ('bury', 'hold', 'halt')",
			"where decision in ('hold', 'halt')"}}},
	{number: 222, name: "a notice does not name its generation", breaks: "a consumer replays a death that is history",
		tests: finder{"store/memory", "^TestStore$/^Notice$"},
		edits: []edit{{"store/notice.go", "Generation: m.Generation, SourceMailbox", "SourceMailbox"}}},
	{number: 223, name: "all parts of a type have to be in it", breaks: "a filter with two types of errors finds no letter",
		tests: finder{"store/memory", "^TestStore$/^Lists$"},
		edits: []edit{{"filter/match.go", "slices.ContainsFunc(parts, func(part string) bool { return containsFold(have, part) })",
			"!slices.ContainsFunc(parts, func(part string) bool { return !containsFold(have, part) })"}}},
}
