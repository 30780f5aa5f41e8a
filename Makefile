# gswitch needs Go and nothing else to build; root to run. `make help` lists the targets.

VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -w -X main.version=$(VERSION)
COMMANDS   := $(notdir $(wildcard cmd/*))
MODULES    := . $(patsubst %/go.mod,%,$(wildcard bench/go.mod bench/peers/*/go.mod examples/*/go.mod))
TOOLS      := $(CURDIR)/bin/tools
FUZZTIME   ?= 10s
FUZZCORPUS ?= $(CURDIR)/bin/corpus
BENCHTIME  ?= 100ms
BENCH      ?=

# The tools' versions are pinned here and nowhere else. Those of the generators follow go.mod, so that
# generated code and the library that it calls are of one release.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
modversion   = $(shell go list -m -f '{{.Version}}' $(1))

# Versions of packages: v1.2.3, or after it how many commits since; before the first tag 0.0.0 and the commit.
PACKAGE_VERSION = $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//' || true)
GOFLOW2     := github.com/netsampler/goflow2/v2/cmd/goflow2@v2.2.6
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4

.PHONY: help package images build test race soak bench bench-all bench-memory bench-ceiling bench-sim bench-tool profile-sim demo generate lint mutants vulnerabilities verify fuzz-short fuzz-nightly fuzz-keep install-tools clean figures figures-short figures-netns unseen odds $(COMMANDS)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

build: $(COMMANDS) ## static binaries of every command in bin/

$(COMMANDS):
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/$@ ./cmd/$@

package: build ## deb and rpm into bin/packages: programs, units, manual pages, completions, licences
	rm -rf bin/package bin/packages && mkdir -p bin/packages
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go run ./deploy/package -version $(VERSION) -out bin/package bin/gswitch bin/ghost bin/gfabric bin/gcollect
	for p in deb rpm; do ARCH=$$(go env GOARCH) VERSION=$(or $(PACKAGE_VERSION),0.0.0-$(VERSION)) \
	  go run $(NFPM) package -f deploy/package/nfpm.yaml -p $$p -t bin/packages/ || exit 1; done
	go run ./deploy/package -check bin/packages/*.deb bin/packages/*.rpm

images: build ## container images gswitch, ghost and gfabric (docker, or DOCKER=podman)
	mkdir -p bin/run
	for i in gswitch ghost gfabric; do $(or $(DOCKER),docker) build -f deploy/container/Dockerfile --target $$i --build-arg VERSION=$(VERSION) -t $$i:$(VERSION) -t $$i . || exit 1; done

# End-to-end tests follow alone: they need their share of the cores to be in time.
test: ## every test of every module (as root: tests of AF_XDP and namespaces skip without it)
	@rc=0; for m in $(MODULES); do (cd $$m && go test -timeout 60m $(TESTFLAGS) $$(go list ./... | grep -v '/e2e$$')) || rc=1; done; \
	go test -timeout 60m $(TESTFLAGS) $(E2EFLAGS) ./e2e || rc=1; exit $$rc

race: ## the tests of the components that share memory between goroutines, under the race detector (needs a C compiler)
	go test -race -short ./frame/... ./dataplane/... ./metrics/... ./control/... ./verbs/... ./cli/ghost/... ./fabric/run/... ./fabric/workers/... ./telemetry/export/...

soak: ## ten million mutated frames through a whole switch, and through one with all telemetry, ten thousand cases of the isolation of ports and of systems, a thousand kills, fifty stops of each daemon under load, a run out of memory, half an hour of changes under load, ten minutes of them recorded and replayed, a gigabyte between recorded hosts, another through channels (root)
	go test -count=1 ./vswitch -run TestMutatedFrames -mutations 10000000
	go test -count=1 ./systems -run TestMutatedFrames -mutations 10000000
	go test -count=1 ./vswitch -run TestIsolation -isolation 10000
	go test -count=1 ./config -run TestIsolationOfSystems -isolation 10000
	go test -count=1 ./e2e -v -run 'TestKilledAnywhere|StopUnderLoad|StopsUnderLoad|TestOutOfMemory' -timeout 0 -kills 1000 -soak
	go test -count=1 ./e2e -run TestChurn -timeout 0 -churn 30m
	go test -count=1 ./e2e -run TestRecordReplays -timeout 0 -record 10m
	go test -count=1 ./e2e -run TestGhostsRecord -timeout 0 -recorded 1GB
	go test -count=1 ./e2e -run TestTransparentSoak -timeout 0 -transfer 1000000000

bench: build bench-tool ## in-memory benchmarks, then the comparison on veth; BENCH='-rounds 5 gswitch-l2 c' sets options
	bin/gbench memory -benchtime $(BENCHTIME)
	bin/gbench compare -json bench/out/throughput.json $(BENCH)

bench-all: bench ## the same, and round trips, loss at 0.6 Mpps, and the cost of idling
	bin/gbench compare -L -json bench/out/latency.json
	bin/gbench compare -rate 600000 -json bench/out/paced.json gswitch-l2 gswitch-full c testpmd
	bin/gbench compare -idle -json bench/out/idle.json gswitch-l2 gswitch-full gswitch-adaptive

bench-memory: bench-tool ## the in-memory benchmarks alone (no root)
	bin/gbench memory -benchtime $(BENCHTIME)

bench-ceiling: bench-tool ## what a core can do without a kernel, over rings in memory, beside C (no root)
	bin/gbench ceiling $(BENCH)

bench-sim: gfabric ## networks in virtual time, in turn, medians (no root); BENCH='-rounds 9 -cc hpcc' sets options
	cd bench && CGO_ENABLED=0 go build -trimpath -o ../bin/gbench ./cmd/gbench
	bin/gbench sim $(BENCH)

profile-sim: gfabric ## the profile by which the compiler lays out gfabric, anew
	@d=$$(mktemp -d) && for cc in hpcc dcqcn timely dctcp; do for w in FbHdp WebSearch; do for i in 1 2 3; do \
	  GODEBUG=asyncpreemptoff=1 bin/gfabric ns3 --topology fabric/ns3/testdata/ls16_$${w}_30.topo --flows fabric/ns3/testdata/ls16_$${w}_30.flow \
	    --cc $$cc --cpuprofile $$d/$$cc.$$w.$$i >/dev/null || exit 1; \
	done; done; done && go tool pprof -proto $$d/* > $$d/merged && mv $$d/merged cmd/gfabric/default.pgo && rm -r $$d

bench-tool: ## the generator, sink and harness, with the peers that can be compiled here
	cd bench && CGO_ENABLED=0 go build -trimpath -o ../bin/gbench ./cmd/gbench
	cd bench/peers/asavie && CGO_ENABLED=0 go build -trimpath -o ../../../bin/peer-asavie .
	bench/peers/cl2fwd/build.sh bin/peer-cl2fwd

demo: gfabric ## eight hosts send to one on real frames, DCQCN and then HPCC, beside what virtual time predicts (root)
	bin/gfabric demo

SCENARIOS ?= $(shell find scenarios -name '*.yaml' | sort)

figures: gfabric ## every scenario in full, into results/ (minutes to hours; what is finished is not run again); SCENARIOS='...' chooses
	@rc=0; for s in $(SCENARIOS); do echo "== $$s"; bin/gfabric run $$s || rc=1; done; exit $$rc

figures-short: gfabric ## the short form of every scenario, into results/ (a minute or two)
	@rc=0; for s in $(SCENARIOS); do echo "== $$s"; bin/gfabric run $$s --short --quiet || rc=1; done; exit $$rc

# Scenarios that are about real frames. They judge time: nothing else is to run on the machine.
ON_NETNS ?= scenarios/sundial/real-frames.yaml scenarios/sundial/real-frames-root.yaml scenarios/sundial/real-time.yaml

figures-netns: gfabric ## the scenarios that are about real frames, in full, on them (root, a minute); ON_NETNS='...' chooses
	@rc=0; for s in $(ON_NETNS); do echo "== $$s"; bin/gfabric run $$s --on netns --quiet || rc=1; done; exit $$rc

unseen: ## the short form of every scenario with a seed that is the date: of a hundred three may miss (minutes); SEED=20261123 chooses
	go test ./scenarios -run TestUnseenSeed -count=1 -timeout 0 -unseen $(if $(SEED),-first-seed $(SEED))

odds: ## how often each short form misses with seeds that nobody chose, drawn from so many: ODDS=12 (an hour or more); OF=hpcc/ chooses, ODDS_SEEDS=5,8 asks for more seeds, too
	go test ./scenarios -run TestOdds -count=1 -timeout 0 -odds $(or $(ODDS),12) $(if $(SEED),-first-seed $(SEED)) -odds-of '$(OF)' -odds-seeds '$(ODDS_SEEDS)'

generate: install-tools ## BPF objects and RPC code (needs clang and protoc)
	PATH="$(TOOLS):$$PATH" go generate ./...

lint: ## gofmt, go mod tidy, go vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not formatted by gofmt:"; echo "$$out"; exit 1; }
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff && go vet ./... && go run $(STATICCHECK) ./...) || exit 1; done

mutants: ## each defect of testdata/mutants.yaml put into the code by itself: the test that is to find it has to fail (root, minutes)
	go test . -count=1 -run TestMutants -timeout 0 -mutants

vulnerabilities: ## known vulnerabilities in what the programs of every module call (asks vuln.go.dev)
	@for m in $(MODULES); do echo "== $$m"; (cd $$m && go run $(GOVULNCHECK) ./...) || exit 1; done

# go mod verify does not check a module beside it; go mod download compares with go.sum, too.
verify: ## the modules that every module uses, against its go.sum
	@for m in $(MODULES); do echo "== $$m"; (cd $$m && if grep -q '=> \.\./' go.mod; then go mod download; else go mod verify; fi) || exit 1; done

fuzz-short: ## each fuzz target for FUZZTIME
	@grep -rlE '^func Fuzz' --include=*_test.go . | while read -r f; do \
	  sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$f" | while read -r t; do \
	    echo "== $$(dirname "$$f") $$t"; go test -run '^$$' -fuzz "^$$t$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$f")" || exit 1; \
	  done || exit 1; \
	done

# What fuzzing finds of inputs lies in Go's cache, which others may empty: it comes from a directory and goes back.
fuzz-nightly: ## each fuzz target for ten minutes (FUZZTIME), from the inputs in FUZZCORPUS on, which grow; some of them go into the tree
	@cache=$$(go env GOCACHE)/fuzz/gswitch; rc=0; mkdir -p "$$cache" "$(FUZZCORPUS)" && cp -R "$(FUZZCORPUS)/." "$$cache/" || exit 1; \
	$(MAKE) --no-print-directory fuzz-short FUZZTIME=$(if $(filter file,$(origin FUZZTIME)),10m,$(FUZZTIME)) || rc=1; \
	cp -R "$$cache/." "$(FUZZCORPUS)/" && echo "$$(find "$(FUZZCORPUS)" -type f | wc -l) inputs in $(FUZZCORPUS)"; \
	$(MAKE) --no-print-directory fuzz-keep FUZZCACHE="$(FUZZCORPUS)"; exit $$rc

# Every test goes through what lies in testdata: inputs of up to 4 KiB, and of each target so many a night, up to 200.
FUZZKEEP  ?= 5
FUZZCACHE ?= $(FUZZCORPUS)
fuzz-keep: ## of the inputs in FUZZCORPUS, FUZZKEEP more of each target into the tree (testdata/fuzz), to be committed
	@(cd "$(FUZZCACHE)" && find . -type f -size -9 | LC_ALL=C sort) | while read -r f; do \
	  t=$${f%/*}; p=$${t%/*}; n=$${t##*/}; to="$$p/testdata/fuzz/$$n"; \
	  if grep -qs "^func $$n(" "$$p"/*_test.go && [ ! -e "$$to/$${f##*/}" ] && [ "$$(find "$$to" -type f 2>/dev/null | wc -l)" -lt 200 ]; then echo "$$f $$to"; fi; \
	done | awk 'n[$$2]++ < $(FUZZKEEP)' | while read -r f to; do mkdir -p "$$to" && cp "$(FUZZCACHE)/$$f" "$$to/" && echo "kept $$to/$${f##*/}"; done

install-tools: ## the generators that protoc calls, and goflow2, by which tests read what collectors get, into bin/tools
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go@$(call modversion,google.golang.org/protobuf)
	GOBIN=$(TOOLS) go install connectrpc.com/connect/cmd/protoc-gen-connect-go@$(call modversion,connectrpc.com/connect)
	GOBIN=$(TOOLS) go install $(GOFLOW2)

clean: ## remove what the targets above made
	rm -rf bin
