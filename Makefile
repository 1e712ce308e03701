# Everything a person or a machine runs here. Go and a C compiler are needed; npm only for the peers that some tests use.

GO ?= go

.PHONY: build demo test binaries check fuzz audit race crash families bench clean

build:
	$(GO) build -trimpath -o bin/holdfast ./cmd/holdfast

# The main job: a goal that survives kill -9. No key, no network.
demo: build
	./bin/holdfast demo

# Both builds of the binary are linked once for all packages.
test: binaries
	HOLDFAST_TEST_BINARIES=$(CURDIR)/bin/test $(GO) test -timeout 25m ./...

binaries:
	$(GO) build -ldflags='-s -w' -o bin/test/holdfast ./cmd/holdfast
	$(GO) build -ldflags='-s -w' -tags faultpoints -o bin/test/holdfast-fault ./cmd/holdfast

check:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) vet -tags faultpoints ./...
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) build -o /dev/null ./cmd/holdfast
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(MAKE) test
	$(MAKE) fuzz

# Every fuzz target for a minute each. `make test` runs their seeds only.
FUZZTIME ?= 60s
fuzz:
	@grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -d' ' -f2 | while read -r name; do \
			echo "$$dir $$name"; $(GO) test $$dir -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) </dev/null || exit 1; \
		done || exit 1; \
	done

# Known vulnerabilities and licences of what is linked. The advisories come with the module cache: no network once they are there.
audit:
	cd tools && $(GO) test ./... && $(GO) run ./audit

race:
	$(GO) test -race -timeout 30m ./acp/... ./session/... ./goals/... ./recovery/... ./internal/... ./mcp/...

# Dies at every named point, twice in a row, and during recovery; then eight agents on one store for two minutes, killed and suspended at random.
crash:
	$(GO) test -tags faultpoints -count=1 -run 'TestCrash' ./internal/...
	HOLDFAST_CRASH_LONG=1 $(GO) test -count=1 -timeout 60m ./conformance/crash
	HOLDFAST_CRASH_LONG=1 $(GO) test -count=1 -timeout 20m -v -run TestSoak_Long ./conformance/soak

# The suites that drive the binary, with the other model families. Parts of them run on all anyway.
families:
	HOLDFAST_FAMILY=anthropic $(GO) test -count=1 -timeout 20m ./conformance/... ./goals
	HOLDFAST_FAMILY=responses $(GO) test -count=1 -timeout 20m ./conformance/... ./goals

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1x ./conformance/bench
	$(GO) test -run '^$$' -bench . ./acp/... ./session ./internal/store ./internal/instance ./internal/provider ./internal/proc ./internal/tools ./internal/worktree ./mcp/client

clean:
	rm -rf bin conformance/node_modules
