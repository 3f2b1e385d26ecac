package main

// ofPools has mutants of stores over the pool of a caller.
var ofPools = []mutant{
	{number: 250, name: "renewals wait for the caller's pool", breaks: "handlers that hold all connections lose their leases",
		tests: finder{"store/postgres", "^TestHandlersHoldThePool$"},
		edits: []edit{{"store/postgres/driver.go", "		over = d.own\n", "		over = d.pool\n"}}},
	{number: 251, name: "completing in a transaction waits for the caller's pool", breaks: "a handler waits for the connection that it has",
		tests: finder{"store/postgres", "^TestAPoolOfOne$"},
		edits: []edit{{"store/postgres/ranges.go", "s.transact(ctx, s.own,", "s.transact(ctx, s.pool,"}}},
	{number: 252, name: "the listener leaves notifications to the caller", breaks: "a worker over a pool hears of no work",
		tests: finder{"store/postgres", "^TestPoolHasTheLastWord$"},
		edits: []edit{{"store/postgres/endpoint.go", "	config.OnNotification = nil ", "	//"}}},
	{number: 253, name: "a transaction of another server is taken", breaks: "messages lie where no worker of the store looks",
		tests: finder{"store/postgres", "^TestTransactionsOfAnotherDatabase$"},
		edits: []edit{{"store/postgres/callertx.go", "s.cluster != \"\" && cluster != s.cluster", "false"}}},
	{number: 254, name: "a pool keeps its level of isolation", breaks: "calls over a serializable pool fail where they would wait",
		tests: finder{"store/postgres", "^TestPoolHasTheLastWord$"},
		edits: []edit{{"store/postgres/tx.go", "\"begin isolation level read committed\"", "\"begin\""}}},
	{number: 255, name: "calls have the settings of the caller's pool", breaks: "a limit for pages ends a prune, and claims scan tables",
		tests: finder{"store/postgres", "^TestPoolHasTheLastWord$"},
		edits: []edit{{"store/postgres/callerpool.go", "= pool, perTransaction(s.settings())", "= pool, \"\""}}},
}
