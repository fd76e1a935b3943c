# The front door of attune. CMake builds, tests/ and bench/ do the work; this file only names it.
# Assumed to be there: make, bash and what every Debian has. The rest comes from packages/*.txt.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
.DEFAULT_GOAL := help
.PHONY: help demo check check-deep check-aarch64 prove fault test-slurm bench sim install clean packages build

help:
	@echo 'make demo        build attune, tune modelled and real collectives with it (no GPU needed)'
	@echo 'make check       unit and system tests; those without MPI also with ASan and UBSan'
	@echo 'make check-deep  races (ThreadSanitizer), fuzzing, MPI under ASan, the proof, long runs, Slurm'
	@echo 'make check-aarch64  build for aarch64 (Grace), unit tests under QEMU; fetches 110 MB'
	@echo 'make test-slurm  jobs on clusters of virtual nodes with a real Slurm (FULL=1: 50 runs in a row)'
	@echo 'make prove       the fence: model checker and simulation (FULL=1: 10^6 schedules)'
	@echo 'make fault       real processes killed and stopped at every step (FULL=1: 20 times each)'
	@echo 'make sim         strategies against each other on every surface: build/sim/suite.json (SEEDS=10 quick)'
	@echo 'make bench       what attune costs: build/bench/hook.json, agent.json, fence.json,'
	@echo '                 scale.json'
	@echo 'make install     to PREFIX=$(PREFIX) (DESTDIR is honoured)'
	@echo 'make packages    install the Debian packages that all of this needs'
	@echo 'make clean       remove build/'

packages:
	@packages/install demo check

build:
	@packages/install demo
	@cmake/build-preset release -DATTUNE_TESTS=OFF $(BUILD_OPTIONS)

demo: build
	@bench/demo/demo.sh

check: packages
	@tests/check quick

check-deep: packages
	@tests/check deep

check-aarch64:
	@tests/aarch64

test-slurm: packages
	@tests/check slurm

prove: packages
	@ATTUNE_TARGET=sim cmake/build-preset release -DATTUNE_TESTS=ON
	@ATTUNE_TARGET=broken_sims cmake/build-preset release -DATTUNE_TESTS=ON
	@tests/prove/prove

fault: packages
	@cmake/build-preset release -DATTUNE_TESTS=ON
	@tests/fault/matrix

bench: build
	@cmake --build build/release --target bench-hook
	@cmake --build build/release --target bench-agent
	@cmake --build build/release --target bench-fence
	@cmake --build build/release --target bench-scale

SEEDS ?= 100
sim: build
	@mkdir -p build/sim
	build/release/bin/attune sim --suite --seeds $(SEEDS) --json build/sim/suite.json --csv build/sim/suite.csv

install: BUILD_OPTIONS = '-DCMAKE_INSTALL_PREFIX=$(PREFIX)'
install: build
	@cmake --install build/release

clean:
	rm -rf build
