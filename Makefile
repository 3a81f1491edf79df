# `make` lists what there is to do. The work is in script/, which can be run by hand as well.

.DEFAULT_GOAL := help
.PHONY: help run build test faults race oracles check fmt generate fuzz crash soak bench need release clean

BIN     := bin/hookglass
DURATION ?= 10m
SEED    ?=
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build, and start the service for one person on this machine (ARGS="--listen 127.0.0.1:0")
	@./$(BIN) dev $(ARGS)

build: ## build ./bin/hookglass, one static binary
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X hookglass.Version=$(VERSION)' -o $(BIN) ./cmd/hookglass

test: need ## every test but faults, on SQLite and PostgreSQL; the first run installs what a test needs, if it may
	@script/test

faults: need ## the program killed, frozen and flooded, its disk filled and its database taken away, in a few minutes
	@script/test ./internal/faults

race: need ## every test under the race detector (needs a C compiler)
	@script/test -race ./...

oracles: ## our signatures against the senders' own libraries, which it downloads
	@cd internal/oracles && go test ./...

check: ## format, vet, lint, generated files, go.mod, known vulnerabilities
	@script/check

fmt: ## format the Go and templ files
	@script/fmt

generate: ## write the Go files of the templ pages
	@script/generate

fuzz: ## every fuzz target for a while (FUZZTIME=10s each)
	@script/fuzz

crash: need ## the long form of faults: many kills, freezes, full disks and floods (a quarter of an hour)
	@HOOKGLASS_LONG=1 go test -tags long -count=1 -timeout 2h -v ./internal/faults/

soak: need ## mixed load and random blows with the race detector, ending with the balance (DURATION=10m, SEED=...)
	@HOOKGLASS_SOAK=$(DURATION) HOOKGLASS_SOAK_SEED=$(SEED) go test -count=1 -timeout 24h -v -run '^TestSoak$$' ./internal/faults/

bench: build ## measure, print the tables and write docs/performance.md (ARGS="-short" for a smoke run)
	@go run ./bench -binary $(BIN) $(ARGS)

need: ## install PostgreSQL's programs and a headless browser for the tests, when missing and when it may
	@script/need

release: ## archives, packages, licences, bill of materials and checksums in dist/ (ARGS="-only linux_amd64" for one platform)
	@script/release $(ARGS)

clean: ## remove what was built
	@rm -rf bin dist
