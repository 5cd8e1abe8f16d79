# Every target creates its environments: `make demo` and `make test` need only Python 3.10 to 3.13 and make.

PYTHON ?= python3
LATEST := .venvs/tensorflow-latest
IO := .venvs/tensorflow-2.16-io
# Keras, JAX and PyTorch, without TensorFlow.
FRAMEWORKS := .venvs/frameworks
BENCH := .venvs/bench
# The environments of the tests have the versions of a lock file. uv installs them: it resolves for all versions of
# Python at once, and environments share the files of a package.
UV := .venvs/uv/bin/uv
NEWEST := tests/newest.txt
OLDEST := tests/oldest.txt
# Servers of S3 and of Azure's blob storage, which tests start.
SERVERS := .venvs/moto/ready .venvs/azurite/ready
WHEEL := .venvs/wheel
WHEELS := .venvs/wheels
FUZZ := build/fuzz
# Python of the environment of the wheel, without a compiler.
ALONE := env -u RECORDSPEC_NATIVE PATH=$(CURDIR)/$(WHEEL)/bin $(WHEEL)/bin/python
ALONE_INSTALL := env -u RECORDSPEC_NATIVE PATH=$(CURDIR)/$(WHEEL)/bin UV_BUILD_CONSTRAINT=$(NEWEST) \
	$(CURDIR)/$(UV) pip install --quiet --python $(WHEEL) -c $(NEWEST)
# Environments have an editable installation of the package. The codec is compiled again when its source changes.
PACKAGE := setup.cfg setup.py pyproject.toml pipelines/recordspec/wire/codec.cpp
# If there is a C++ compiler, the reference codec is an error: no test passes on it unnoticed.
ifneq ($(shell command -v $${CXX:-c++}),)
export RECORDSPEC_NATIVE ?= required
endif
# tensorflow-io 0.37.1, the last release, has wheels for Python up to 3.12.
HAS_IO := $(shell $(PYTHON) -c 'import sys; print("yes" if sys.version_info < (3, 13) else "")')
PIP := -m pip install --quiet --disable-pip-version-check
# uv finds wheels wherever pip finds them on this machine.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# Python must write bytecode. Otherwise each process compiles the modules that it imports (12 s for TensorFlow).
unexport PYTHONDONTWRITEBYTECODE
define environment
	@echo "installing $(@D)"
	@$(PYTHON) -m venv --without-pip $(@D)
	@UV_BUILD_CONSTRAINT=$(NEWEST) $(UV) pip install --quiet --python $(@D) -c $(VERSIONS) $(REQUIRED) || { \
		echo "$(VERSIONS) does not fit this Python or this machine: $(@D) gets the newest versions" >&2; \
		$(UV) pip install --quiet --python $(@D) $(REQUIRED); }
	@touch $@
endef
# Consecutive tests of a file share fixtures, so each worker runs a contiguous range of tests. A worker that is done
# steals from the end of another range. There is one worker more than cores: tests also wait for processes and timeouts.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count(), 7) + 1)')
PYTEST := -m pytest -n $(WORKERS) --dist worksteal $(if $(CI),--durations=40)
# The tests of Spark share one session and run in their own process, since a session takes long to start.
SPARK := -m pytest $(if $(CI),--durations=40) tests/spark
TESTS := not services and not docs
# TensorFlow cannot be imported: a test that tries is skipped.
WITHOUT_TENSORFLOW := PYTHONPATH=$(CURDIR)/tests/without_tensorflow
PASSED := build/passed-without-tensorflow.txt
# Each commit runs another third of the test files on TensorFlow 2.16, and tries other crash points.
COMMITS := $(shell git rev-list --count HEAD 2> /dev/null || echo 0)
# With THIRD, frameworks, services and pages run a third of their tests with the mark `long`.
LONG := $(if $(THIRD),--third=$(COMMITS) --third-of=long)
# Before a release, Hypothesis tries all examples.
WHOLE := --hypothesis-profile all

.PHONY: environments lock docs screenshots docs-serve test-docs demo unpinned test test-quick test-io test-io-third test-io-services test-io-all test-all test-frameworks test-services test-clusters test-spark test-wheel wheels fuzz crash lint types bench bench-write bench-read bench-jobs bench-readers bench-inspecting bench-scanning bench-random bench-feeding bench-edges clean

demo: .venv/ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" python demo/digits.py

# The demo with the newest release of each package, as pip installs it. It runs in a copy: its installation writes the
# codec into the package, and every environment loads it from there. A failure is printed, and is not an error.
unpinned:
	@(rm -rf build/unpinned && mkdir -p build/unpinned && git ls-files -z | xargs -0 cp --parents -t build/unpinned && \
		PIP_NO_COMPILE=1 $(MAKE) -C build/unpinned demo) || echo "the demo failed with the newest release of each package; the tests use those of $(NEWEST)" >&2

# The environments in which the tests run.
ifeq ($(HAS_IO),yes)
environments: $(IO)/ready
endif
environments: $(LATEST)/ready $(FRAMEWORKS)/ready $(SERVERS)

# Each test once: without TensorFlow if it passes there, otherwise with the newest TensorFlow.
test: $(LATEST)/ready $(SERVERS)
	$(WITHOUT_TENSORFLOW) $(LATEST)/bin/python $(PYTEST) -m '$(TESTS) and not tensorflow' --passed=$(PASSED)
	$(LATEST)/bin/python $(PYTEST) -m '$(TESTS)' --except=$(PASSED)

test-quick: $(LATEST)/ready
	$(WITHOUT_TENSORFLOW) $(LATEST)/bin/python $(PYTEST) -m '$(TESTS) and not tensorflow and not slow'

# The tests without TensorFlow on another Python: `make test-python-3.13`.
test-python-%: .venvs/python-%/ready $(SERVERS)
	$(WITHOUT_TENSORFLOW) .venvs/python-$*/bin/python $(PYTEST) -m '$(TESTS) and not tensorflow'

# For a release: all tests on both versions of TensorFlow, with all examples, and everything that `.ci/run` runs.
test-all: $(LATEST)/ready $(SERVERS) lint types
	$(WITHOUT_TENSORFLOW) $(LATEST)/bin/python $(PYTEST) $(WHOLE) -m '$(TESTS) and not tensorflow'
	$(LATEST)/bin/python $(PYTEST) $(WHOLE) -m '$(TESTS)'
	$(MAKE) test-io-all test-frameworks crash test-services test-docs test-wheel fuzz

test-frameworks: $(FRAMEWORKS)/ready
	$(FRAMEWORKS)/bin/python -m pytest $(LONG) -n 2 --dist worksteal tests/frameworks \
		tests/test_docstrings.py tests/journeys -k 'frameworks or jax or torch or on_ray'

# Clusters and training jobs, in separate processes. They wait a lot: `make -j 2` runs Spark beside the rest.
test-services: test-clusters test-spark

test-clusters: $(LATEST)/ready $(SERVERS)
	$(LATEST)/bin/python $(PYTEST) $(LONG) -m services --ignore tests/spark

test-spark: $(LATEST)/ready $(SERVERS)
	$(LATEST)/bin/python $(SPARK) $(LONG)

# TensorFlow 2.16 with tensorflow-io and the lower bounds of setup.cfg: golden files, parsing, decoding, a third of the
# remaining files, and the services of TensorFlow.
test-io: test-io-third test-io-services

ifeq ($(HAS_IO),yes)
test-io-third: $(IO)/ready $(SERVERS)
	$(IO)/bin/python $(PYTEST) -m '$(TESTS) and not newest' --third=$(COMMITS)

test-io-services: $(IO)/ready
	$(IO)/bin/python $(PYTEST) $(LONG) -m 'services and not newest' tests/reading tests/training

test-io-all: $(IO)/ready $(SERVERS)
	$(IO)/bin/python $(PYTEST) $(WHOLE) -m 'not newest' --ignore tests/spark
	$(IO)/bin/python $(SPARK) -m 'not newest'
else
test-io-third test-io-services test-io-all:
	@echo "tests with TensorFlow 2.16 and tensorflow-io skipped: they have no wheels for $$($(PYTHON) --version)"
endif

# The site, in build/site; warnings are errors.
screenshots: $(LATEST)/ready
	$(LATEST)/bin/python docs/extensions/screenshots.py

docs: $(LATEST)/ready
	$(LATEST)/bin/python -m sphinx -W --keep-going -q -E -a -b html docs build/site

# Runs every block of its pages, every journey and every notebook, and opens the site in a browser. The site is built
# here, not as a prerequisite: otherwise `make -j` would start these tests last, and they take longest.
test-docs: $(LATEST)/ready $(SERVERS)
	$(MAKE) docs
	$(LATEST)/bin/python $(PYTEST) $(LONG) -m docs

docs-serve: docs
	$(LATEST)/bin/python -m http.server --bind 127.0.0.1 --directory build/site 8000

# Wheels in dist/, for all versions of Python. Zig (from PyPI) compiles for an old glibc and for other processors;
# auditwheel reports the glibc version that a wheel needs.
wheels: wheel-x86_64 wheel-aarch64

wheel-%: $(WHEELS)/ready
	rm -rf build/lib* build/bdist* dist/*_$*.whl
	CXX="$(CURDIR)/$(WHEELS)/bin/python -m ziglang c++ -target $*-linux-gnu.2.17 -s" RECORDSPEC_NATIVE=required \
		$(UV) build --quiet --wheel --no-build-isolation --python $(WHEELS) --out-dir dist \
		--config-setting=--build-option=--plat-name=manylinux2014_$* .
	$(WHEELS)/bin/auditwheel show dist/*_$*.whl | grep 'following platform tag: "manylinux_2_17_$*"'

# A target that adds its wall time and its CPU time to the table of `.ci/run`.
timed-%:
	@start=$$(date +%s); code=0; $(MAKE) $* || code=$$?; times > $(TABLE).$*; \
		cpu=$$(sed -n '2s/[ms]/ /gp' $(TABLE).$* | awk '{printf "%d", $$1 * 60 + $$2 + $$3 * 60 + $$4}'); \
		printf '  %-16s %4d s %6d s of CPU\n' $* $$(($$(date +%s) - start)) $$cpu >> $(TABLE); \
		rm $(TABLE).$*; exit $$code

# Tests the wheel in a new environment without a compiler on the PATH, without TensorFlow and with it. Before that, tests
# the package without a compiled codec.
test-wheel: wheel-$(shell uname -m)
	rm -rf $(WHEEL) build/lib* build/bdist*
	$(PYTHON) -m venv --without-pip $(WHEEL)
	$(ALONE_INSTALL) .
	$(ALONE) tests/from_wheel.py reference $(WHEEL)/reference
	$(ALONE_INSTALL) --reinstall --no-deps dist/*_$$(uname -m).whl
	$(ALONE) tests/from_wheel.py build $(WHEEL)/work
	$(ALONE_INSTALL) "$$(echo dist/*_$$(uname -m).whl)[tensorflow]"
	$(ALONE) tests/from_wheel.py fit $(WHEEL)/work

# Kills, failed system calls and power failures at every point at which a command changes the disk, or at POINTS points.
crash: $(LATEST)/ready
	$(LATEST)/bin/python tests/crashes/sweep.py $(if $(POINTS),--sample $(POINTS) --run $(COMMITS))

# Fuzzes the native codec against protobuf with libFuzzer and sanitizers: first the stored inputs, then SECONDS of new
# inputs. Needs clang, and the compiler and headers of protobuf. A new failing input is written to build/fuzz.
SECONDS ?= 600
fuzz:
	mkdir -p $(FUZZ)/found
	protoc -I tests/fuzz --cpp_out=$(FUZZ) tests/fuzz/example.proto
	clang++ -std=c++17 -g -O1 -Wall -Wextra -Werror -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-I $(FUZZ) tests/fuzz/codec.cpp $(FUZZ)/example.pb.cc -lprotobuf -lpthread -o $(FUZZ)/codec
	$(PYTHON) -m zipfile -e tests/fuzz/inputs.zip $(FUZZ)/inputs
	$(FUZZ)/codec $(FUZZ)/found $(FUZZ)/inputs -max_total_time=$(SECONDS) -max_len=600 -timeout=10 -malloc_limit_mb=256 \
		-artifact_prefix=$(FUZZ)/ -verbosity=0 -print_final_stats=1

lint: $(LATEST)/ready
	$(LATEST)/bin/ruff check .
	$(LATEST)/bin/ruff format --check .

types: $(LATEST)/ready
	$(LATEST)/bin/mypy
	$(LATEST)/bin/mypy tests/typed_script.py

bench: $(LATEST)/ready
	$(LATEST)/bin/python benchmarks/tables.py
	$(LATEST)/bin/python benchmarks/media.py
	$(LATEST)/bin/python benchmarks/shuffling.py

bench-write: $(BENCH)/ready $(BENCH)-tfx-bsl/ready $(BENCH)-tfrecord/ready
	$(BENCH)/bin/python benchmarks/write.py

bench-read: $(BENCH)/ready $(BENCH)-tfrecord/ready
	$(BENCH)/bin/python benchmarks/read.py

bench-jobs: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/jobs.py
	$(BENCH)/bin/python benchmarks/jobs.py --source jsonl
	$(BENCH)/bin/python benchmarks/jobs.py --memory 256MiB

bench-readers: $(BENCH)/ready $(BENCH)-tfrecord/ready $(BENCH)-dali/ready
	$(BENCH)/bin/python benchmarks/readers.py

bench-random: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/random_access.py

bench-edges: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/edges.py

bench-feeding: $(BENCH)-frameworks/ready
	$(BENCH)-frameworks/bin/python benchmarks/feeding.py
	$(BENCH)-frameworks/bin/python benchmarks/packing.py

bench-scanning: $(BENCH)/ready $(BENCH)-tfx-bsl/ready $(BENCH)-tfrecord/ready
	$(BENCH)/bin/python benchmarks/scanning.py
	$(BENCH)/bin/python benchmarks/query_memory.py

bench-inspecting: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/inspecting.py
	$(BENCH)/bin/python benchmarks/starting.py

.venv/ready: $(PACKAGE)
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) -e '.[demo]'
	touch $@

$(UV): tests/requirements/uv.txt
	$(PYTHON) -m venv .venvs/uv
	.venvs/uv/bin/python $(PIP) -r $<
	touch $@

.venvs/%: VERSIONS = $(NEWEST)
$(IO)/ready: VERSIONS = $(OLDEST)

$(LATEST)/ready: REQUIRED = -e '.[test,lint,docs]'
$(LATEST)/ready: $(PACKAGE) $(NEWEST) $(UV)
	$(environment)

$(IO)/ready: REQUIRED = -e '.[test,io]'
$(IO)/ready: $(PACKAGE) $(OLDEST) $(UV)
	$(environment)

$(FRAMEWORKS)/ready: REQUIRED = -e '.[jax,torch,ray]' -r tests/requirements/frameworks.txt
$(FRAMEWORKS)/ready: $(PACKAGE) $(NEWEST) $(UV) tests/requirements/frameworks.txt
	$(environment)

.venvs/python-%/ready: PYTHON = python$*
.venvs/python-%/ready: REQUIRED = -e '.[test]'
.venvs/python-%/ready: $(PACKAGE) $(NEWEST) $(UV)
	$(environment)

.venvs/%/ready: REQUIRED = -r $<
.venvs/%/ready: tests/requirements/%.txt $(NEWEST) $(UV)
	$(environment)

# The lock files name all packages of the environments of the tests, for all versions of Python, on any machine. The lower
# bounds stand in tests/requirements/oldest.txt.
LOCK := env -u UV_FIND_LINKS $(UV) pip compile --quiet --upgrade --universal --python-version 3.10 --no-annotate \
	--custom-compile-command 'make lock' setup.cfg
lock: $(UV)
	$(LOCK) --extra test --extra lint --extra docs --extra jax --extra ray --extra view \
		tests/requirements/frameworks.txt tests/requirements/moto.txt tests/requirements/wheels.txt -o $(NEWEST)
	$(LOCK) --extra test --extra io -c tests/requirements/oldest.txt -o $(OLDEST)
	cd tests/requirements/azurite && npm update --package-lock-only --omit-lockfile-registry-resolved --silent

# The environments of the benchmarks: packages with conflicting requirements have separate environments.
$(BENCH)/ready: $(PACKAGE)

.PRECIOUS: .venvs/%/ready .venvs/python-%/ready
.venvs/%/ready: benchmarks/requirements/%.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python $(PIP) -r $<
	touch $@

# If npm cannot install it, the tests that need it are skipped, with the reason.
.venvs/azurite/ready: tests/requirements/azurite/package.json tests/requirements/azurite/package-lock.json
	mkdir -p .venvs/azurite
	cp $^ .venvs/azurite
	cd .venvs/azurite && npm ci --silent --no-audit --no-fund || echo "no azurite: tests of Azure are skipped"
	touch $@

clean:
	rm -rf .venv .venvs .pytest_cache .mypy_cache .ruff_cache build dist pipelines/*.egg-info
