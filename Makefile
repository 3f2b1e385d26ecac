# `make` alone lists what there is to make.
GO       ?= go
LINTER   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
HUGO     := github.com/gohugoio/hugo@v0.163.0
FUZZTIME ?= 10s

# Options and packages for the tests, as in: make test TESTFLAGS='-count 1 ./store/...'
TESTFLAGS ?=

# Flags of the benchmark, as in: make bench BENCHFLAGS='-rounds 3 -scenarios drain'
BENCHFLAGS ?=

# Versions of PostgreSQL in addition to that of the distribution: the oldest and the newest.
MAJORS ?= 13 18

# A part of a deep run, as in: make deep ONLY='model power' FOR=10m
ONLY     ?=
FOR      ?= 0

.DEFAULT_GOAL := help
.PHONY: help build first release release-check site look test quick proof test-postgres deep rows mutants surface trust test-servers lint arch bench bench-postgres bench-kafka bench-redis bench-idle bench-sql-enqueue bench-exchange bench-map bench-console screenshots pictures bench-check microbench fuzz cover ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/nixie
	$(GO) build -trimpath -ldflags '-s -w' -o bin/nixie ./cmd/nixie

release: ## build the archives, packages and image of this commit into dist (docs/release.md)
	$(GO) run ./internal/release

release-check: ## look at dist as who downloads it would, on fresh roots (CHECK: names of steps)
	$(GO) run ./internal/release/check $(CHECK)

first: build ## build bin/nixie, and run the main job with it: an outage, a bad record, a redrive
	@sh examples/first/first.sh

test: ## vet and run all tests, on the servers that are found
	$(GO) vet ./...
	$(GO) run ./internal/proof/run test -vet off $(TESTFLAGS)

quick: ## run the fast tests: no servers, no race detector, small seeded proofs
	$(GO) run ./internal/proof/run test -tier short $(TESTFLAGS)

proof: ## run the seeded proofs for longer than make test does
	$(GO) run ./internal/proof/run test -tier long -timeout 30m $(TESTFLAGS)

test-postgres: ## run the tests of the store on other versions of PostgreSQL (MAJORS)
	@set -e; for major in $(MAJORS); do \
		echo "PostgreSQL $$major"; \
		NIXIE_TEST_REQUIRE=1 NIXIE_TEST_POSTGRES_MAJOR=$$major $(GO) test -count 1 $(TESTFLAGS) ./store/postgres; \
	done

deep: ## run every proof at length, on from where the last run stopped (ONLY, FOR)
	@mkdir -p bin && $(GO) build -o bin/run ./internal/proof/run
	timeout $(FOR) bin/run deep $(ONLY)

rows: ## run all tests and print the acceptance list with the tests of each row
	$(GO) run ./internal/proof/run test -rows $(TESTFLAGS)

mutants: ## break the code on purpose in many ways and see the tests find each
	$(GO) run ./internal/proof/mutants

surface: ## print every command, flag and JSON field with the story that shows it
	$(GO) test -count 1 -run '^TestSurface$$' -v ./internal/cli

trust: ## write the last deep run into docs/trust.md
	$(GO) run ./internal/proof/run trust

test-servers: ## install the servers that tests use (Debian; root or sudo)
	bash internal/proof/testservers/install

lint: ## run the linters of .golangci.yml; gofmt and vet for the other modules and Windows too
	$(GO) run $(LINTER) run ./...
	@form=$$(gofmt -l bench internal/proof/asynqjobs) && [ -z "$$form" ] || { echo "gofmt -w $$form"; exit 1; }
	GOOS=windows $(GO) vet ./...
	@set -e; for module in bench bench/postgres bench/kafka bench/redis internal/proof/asynqjobs; do (cd $$module && echo "vet $$module" && $(GO) vet ./...); done

arch: ## check the floor plan, the house rules and the licences; print the size of each part
	$(GO) test -count 1 ./internal/proof/arch
	@$(GO) test -run '^TestSizes$$' -v ./internal/proof/arch

bench: ## measure Nixie and its peers alternately (bench/README.md), with BENCHFLAGS
	cd bench && $(GO) run . $(BENCHFLAGS)

bench-postgres: ## the same on a PostgreSQL server that it starts, or NIXIE_BENCH_POSTGRES
	cd bench/postgres && $(GO) run . $(BENCHFLAGS)

bench-kafka: ## consuming from a Kafka broker that it starts, or NIXIE_TEST_KAFKA
	cd bench/kafka && $(GO) run . $(BENCHFLAGS)

bench-redis: ## mailboxes, asynq and Watermill on a Redis server that it starts
	cd bench/redis && $(GO) run . $(BENCHFLAGS)

bench-idle: ## what workers that wait cost, on SQLite and on a PostgreSQL server that it starts
	cd bench/postgres && $(GO) run ./idle $(BENCHFLAGS)

bench-sql-enqueue: ## what enqueue by SQL costs, on a PostgreSQL server that it starts
	cd bench/postgres && $(GO) run ./sqlenqueue $(BENCHFLAGS)

bench-exchange: ## what settle and claim in one call cost, on a PostgreSQL server that it starts
	cd bench/postgres && $(GO) run ./exchange $(BENCHFLAGS)

bench-map: ## what an item of nixie map costs, and what git in a shell loop does
	cd bench && $(GO) run ./worktree $(BENCHFLAGS)

bench-console: ## what pages of the console cost over 1,000,000 letters, and the console in the binary
	cd bench && $(GO) run ./console $(BENCHFLAGS)

screenshots: ## keep a picture of every page of the console, and of a redrive step by step, in bin/screenshots
	@mkdir -p bin/screenshots
	NIXIE_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count 1 -run '^(TestScreens|TestJourney)$$' -v ./console

pictures: screenshots ## make the pictures of the documents, docs/pictures, from those of make screenshots (needs cwebp)
	@set -e; for part in office:720 group:720 redrive:960 letter:900; do for scheme in light dark; do \
		for from in bin/screenshots/??-$${part%:*}-1024-$$scheme.png; do \
			cwebp -quiet -q 80 -crop 0 0 1024 $${part#*:} $$from -o docs/pictures/$${part%:*}-$$scheme.webp; break; done; done; done

# An error of a template may stop Hugo for ever, so it gets three minutes.
site: ## make the site of the documents, dist/site, and check its links and its search
	rm -rf dist/site
	GOBIN=$(CURDIR)/bin $(GO) install $(HUGO)
	$$(command -v timeout | sed 's/$$/ -k 5 180/') bin/hugo --source docs/site --destination $(CURDIR)/dist/site --noBuildLock --logLevel warn
	NIXIE_SITE=$(CURDIR)/dist/site $(GO) test -count 1 -run '^TestSite$$' -v ./internal/proof/docs

look: ## keep what commands print at 80, 120 and 200 columns, in bin/look
	$(GO) test -count 1 -run '^TestPasted$$' ./internal/cli -look $(CURDIR)/bin/look

bench-check: ## vet and test the modules of the benchmarks, with few messages
	cd bench && $(GO) vet ./... && $(GO) test $(TESTFLAGS) ./...
	cd bench/postgres && $(GO) vet ./... && $(GO) test $(TESTFLAGS) ./...
	cd bench/kafka && $(GO) vet ./... && $(GO) test $(TESTFLAGS) ./...
	cd bench/redis && $(GO) vet ./... && $(GO) test $(TESTFLAGS) ./...

microbench: ## run the Go benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

cover: ## measure which statements the tests reach: bin/cover.html
	@mkdir -p bin
	$(GO) test -coverpkg ./... -coverprofile bin/cover.out ./...
	$(GO) tool cover -html bin/cover.out -o bin/cover.html
	$(GO) tool cover -func bin/cover.out | tail -n 1

ci: ## everything that has to pass, as on a fresh machine
	bash .ci/run

clean: ## remove what was built
	rm -rf bin dist
