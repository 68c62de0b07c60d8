# Trainyard. `make demo` shows it, `make test` tests it; both install what is missing on a bare Debian machine.
.PHONY: build generate pictures verify lint test prove soak release demo bench setup

GO      ?= go
TOOL    := $(GO) tool -modfile=go.tools.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
KUBE    := $(shell $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)
LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBE) -X github.com/trainyard/trainyard/internal/cli.Version=$(VERSION)

# Without this tag kustomize can load plugins of Go, for which the linker keeps every symbol and all that they need.
TAGS := kustomize_disable_go_plugin_support

# Kubernetes is linked into bin/trainyard: the first build takes some minutes, later ones seconds.
build:
	@mkdir -p bin
	$(GO) build -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/trainyard ./cmd/trainyard-operator ./cmd/trainyard-agent ./cmd/trainyard-recorder

generate:
	$(GO) generate ./...

# Draws the pictures of docs/ with the commands that the pages print. A test checks that they are up to date.
pictures:
	$(GO) test -run 'TestPictures$$' -count 1 ./internal/cli -update

# Checks that generated files are up to date and go.mod is tidy.
verify:
	@hack/verify.sh

lint:
	$(GO) vet -tags prove -vettool=$(CURDIR)/hack/vet.sh ./...
	$(GO) build -modfile=go.tools.mod -o bin/staticcheck hack/staticcheck/main.go
	$(GO) vet -tags prove -vettool=$(CURDIR)/bin/staticcheck ./...
	$(TOOL) golangci-lint run ./...

# One package after the other: several start a whole cluster, and each needs the machine for itself. `make lint` has vetted the tests;
# go test would vet again with other flags, and go through all of Kubernetes once more.
test: setup verify lint
	$(GO) test -vet=off -p 1 -timeout 25m ./...

# What takes too long for `make test`: a hundred thousand histories of the rules, more than twenty thousand of the controller on an API server,
# every planted bug, minutes of fuzzing, nodes that are lost while a job trains, fifty pairs of gangs, the chart installed by Helm,
# the way back to Training Operator, and Kueue and Volcano, which are built from their modules. docs/proof.md describes it.
prove: setup
	$(GO) test -vet=off -run 'TestInvariants$$' -timeout 60m ./internal/job -rapid.checks=100000
	$(GO) test -vet=off -run 'TestFaults$$|TestHistories$$' -v -timeout 3h ./internal/proof -proof.every 1 -proof.histories 14000
	$(GO) test -vet=off -run 'TestHostile' -v -timeout 1h ./internal/proof -proof.histories 2000
	$(GO) test -vet=off -run 'TestMutants$$' -timeout 2h ./internal/proof -proof.mutants
	for target in flyte:FuzzDecodeTask flyte:FuzzParseCustom flyte:FuzzParseNNodes internal/kinds:FuzzRead internal/document:FuzzParse \
		internal/simulation:FuzzParseScript internal/manifest:FuzzIndexes internal/scalar:FuzzParse; do \
		$(GO) test -vet=off -run '^$$' -fuzz "$${target#*:}\$$" -fuzztime 30s "./$${target%:*}" || exit 1; done
	TRAINYARD_PROVE=1 $(GO) test -vet=off -tags prove -run 'TestATrainingSurvivesWhatNodesDo$$|TestTrainingOperatorTakesRunningJobsBack$$|TestALostNodeCostsThreeMinutes$$' \
		-count 1 -timeout 30m ./internal/controller
	$(GO) test -vet=off -tags prove -run 'TestTheChartOnACluster$$' -count 1 -timeout 20m ./cmd/trainyard-operator
	$(GO) test -vet=off -run 'TestTwoGangsThatFitOneAtATime$$' -timeout 30m ./internal/controller -gangs 50
	$(GO) test -vet=off -tags prove -run 'TestOtherSchedulers$$' -v -count 1 -timeout 2h ./internal/controller
	$(GO) test -vet=off -tags prove -ldflags '$(LDFLAGS)' -run 'TestKueue$$' -v -count 1 -timeout 2h ./internal/cli
	TRAINYARD_PROVE=1 $(GO) test -vet=off -run 'TestEveryLineSurvivesAKilledRecorder$$' -v -count 1 -timeout 30m ./internal/cli

# Runs every test on a cluster three times, to find those that fail now and then.
soak: setup
	$(GO) test -p 1 -count 3 -timeout 90m ./internal/cluster ./internal/controller ./internal/cli

# Builds what a person downloads into dist/, and once more from a fresh copy of the commit, which must give the same bytes.
release:
	rm -rf dist
	$(GO) run ./hack/release -version '$(VERSION)' -out dist -verify

demo:
	@hack/setup.sh demo
	@$(MAKE) --no-print-directory build
	@hack/demo.sh

bench: build
	for peer in trainingoperator trainer; do (cd bench/peers/$$peer && $(GO) build -o $(CURDIR)/bin/ .) || exit 1; done
	$(GO) run ./bench
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m -p 1 ./internal/cli ./internal/controller ./internal/recorder

# Installs what the tests need: Debian's torch, XGBoost and Python client of Kubernetes, Open MPI, MPICH and a C compiler, tmux, a browser and Prometheus' promtool.
setup:
	@hack/setup.sh
