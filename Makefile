# All targets create their environments: `make demo` and `make test` need only Python 3.10 to 3.13 and make.

PYTHON ?= python3
LATEST := .venvs/tensorflow-latest
IO := .venvs/tensorflow-2.16-io
# Keras, JAX and PyTorch, without TensorFlow.
FRAMEWORKS := .venvs/frameworks
BENCH := .venvs/bench
# Servers of S3 and of Azure's blob storage, which tests start.
SERVERS := .venvs/moto/ready .venvs/azurite/ready
WHEEL := .venvs/wheel
WHEELS := .venvs/wheels
FUZZ := build/fuzz
# Python of the environment of the wheel, without a compiler.
ALONE := env -u RECORDSPEC_NATIVE PATH=$(CURDIR)/$(WHEEL)/bin $(WHEEL)/bin/python
# Environments have the package in place, and with it the codec, which is compiled again when its source changes.
PACKAGE := setup.cfg setup.py pyproject.toml pipelines/recordspec/wire/codec.cpp
# With a C++ compiler, the reference codec is an error: no test passes on it unseen.
ifneq ($(shell command -v $${CXX:-c++}),)
export RECORDSPEC_NATIVE ?= required
endif
# tensorflow-io 0.37.1, the last release, has wheels for Python up to 3.12.
HAS_IO := $(shell $(PYTHON) -c 'import sys; print("yes" if sys.version_info < (3, 13) else "")')
PIP := -m pip install --quiet --disable-pip-version-check
# Consecutive tests of a file share fixtures: each worker runs a contiguous range of tests, and steals from the end
# of the other's range when it is done. Three workers on two cores: tests also wait for processes and timeouts.
PYTEST := -m pytest -n 3 --dist worksteal
# The tests of Spark share one session, which takes long to start: they have a process of their own.
SERVICES := -m pytest -n 3 --dist worksteal -m services --ignore tests/spark
SPARK := -m pytest -m services tests/spark

.PHONY: environments docs screenshots docs-serve test-docs test-docs-latest test-docs-io demo test test-latest test-io test-frameworks test-quick test-services test-services-latest test-services-io test-wheel wheels fuzz crash lint types bench bench-write bench-read bench-jobs bench-readers bench-inspecting bench-scanning bench-random bench-feeding bench-edges clean

demo: .venv/ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" python demo/digits.py

# The environments in which the tests run.
ifeq ($(HAS_IO),yes)
environments: $(IO)/ready
endif
environments: $(LATEST)/ready $(FRAMEWORKS)/ready $(SERVERS)

test: test-latest test-io

test-latest: $(LATEST)/ready $(SERVERS)
	$(LATEST)/bin/python $(PYTEST) -m 'not services and not docs'

test-frameworks: $(FRAMEWORKS)/ready
	$(FRAMEWORKS)/bin/python -m pytest -n 2 --dist worksteal tests/frameworks \
		tests/test_docstrings.py tests/journeys -k 'frameworks or jax or torch'

# Fast tests without TensorFlow, which cannot be imported: tests that try are skipped.
test-quick: $(LATEST)/ready
	PYTHONPATH=$(CURDIR)/tests/without_tensorflow $(LATEST)/bin/python $(PYTEST) -m 'not services and not docs and not tensorflow and not slow'

# Clusters and training jobs, in separate processes.
test-services: test-services-latest test-services-io

test-services-latest: $(LATEST)/ready $(SERVERS)
	$(LATEST)/bin/python $(SERVICES)
	$(LATEST)/bin/python $(SPARK)

ifeq ($(HAS_IO),yes)
test-io: $(IO)/ready $(SERVERS)
	$(IO)/bin/python $(PYTEST) -m 'not services and not docs and not newest'

test-docs-io: $(IO)/ready
	$(IO)/bin/python $(PYTEST) -m 'docs and not newest'

test-services-io: $(IO)/ready $(SERVERS)
	$(IO)/bin/python $(SERVICES:services='services and not newest')
	$(IO)/bin/python $(SPARK:services='services and not newest')
else
test-io test-docs-io test-services-io:
	@echo "tests with TensorFlow 2.16 and tensorflow-io skipped: they have no wheels for $$($(PYTHON) --version)"
endif

# The site, in build/site; warnings are errors.
screenshots: $(LATEST)/ready
	$(LATEST)/bin/python docs/extensions/screenshots.py

docs: $(LATEST)/ready
	$(LATEST)/bin/python -m sphinx -W --keep-going -q -E -a -b html docs build/site

# Every block of its pages, every journey and every notebook, run; and the site in a browser.
test-docs: docs test-docs-latest test-docs-io

test-docs-latest: $(LATEST)/ready $(SERVERS)
	$(LATEST)/bin/python $(PYTEST) -m docs

docs-serve: docs
	$(LATEST)/bin/python -m http.server --bind 127.0.0.1 --directory build/site 8000

# Wheels in dist/, for all versions of Python. Zig, which PyPI has, compiles for an old glibc and for other processors;
# auditwheel says which glibc a wheel needs.
wheels: wheel-x86_64 wheel-aarch64

wheel-%: $(WHEELS)/ready
	rm -rf build/lib* build/bdist* dist/*_$*.whl
	CXX="$(CURDIR)/$(WHEELS)/bin/python -m ziglang c++ -target $*-linux-gnu.2.17 -s" RECORDSPEC_NATIVE=required \
		$(WHEELS)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--wheel-dir dist --config-settings=--build-option=--plat-name=manylinux2014_$* .
	$(WHEELS)/bin/auditwheel show dist/*_$*.whl | grep 'following platform tag: "manylinux_2_17_$*"'

# Tests of the wheel in a new environment without a compiler on the PATH: without TensorFlow, and with it; before
# that, of the package where its codec cannot be compiled.
test-wheel: wheel-$(shell uname -m)
	rm -rf $(WHEEL) build/lib* build/bdist*
	$(PYTHON) -m venv $(WHEEL)
	$(ALONE) -m pip install --quiet --disable-pip-version-check .
	$(ALONE) tests/from_wheel.py reference $(WHEEL)/reference
	$(ALONE) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*_$$(uname -m).whl
	$(ALONE) tests/from_wheel.py build $(WHEEL)/work
	$(WHEEL)/bin/python $(PIP) "$$(echo dist/*_$$(uname -m).whl)[tensorflow]"
	$(ALONE) tests/from_wheel.py fit $(WHEEL)/work

# Kills, failed system calls and power failures at every point at which a command changes the disk, or at POINTS of them.
crash: $(LATEST)/ready
	$(LATEST)/bin/python tests/crashes/sweep.py $(if $(POINTS),--sample $(POINTS))

# Fuzzes the native codec against protobuf for SECONDS, after the kept inputs, with libFuzzer and sanitizers. Needs clang,
# and protobuf's compiler and headers. A new input that fails is written to build/fuzz.
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

bench-write: $(BENCH)/ready $(BENCH)-tfx-bsl/ready $(BENCH)-tfrecord/ready
	$(BENCH)/bin/python benchmarks/write.py

bench-read: $(BENCH)/ready $(BENCH)-tfrecord/ready
	$(BENCH)/bin/python benchmarks/read.py

bench-jobs: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/jobs.py
	$(BENCH)/bin/python benchmarks/jobs.py --memory 256MiB

bench-readers: $(BENCH)/ready $(BENCH)-tfrecord/ready $(BENCH)-dali/ready
	$(BENCH)/bin/python benchmarks/readers.py

bench-random: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/random_access.py

bench-edges: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/edges.py

bench-feeding: $(BENCH)-frameworks/ready
	$(BENCH)-frameworks/bin/python benchmarks/feeding.py

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

$(LATEST)/ready: $(PACKAGE)
	$(PYTHON) -m venv $(LATEST)
	$(LATEST)/bin/python $(PIP) -e '.[test,lint,docs]'
	touch $@

$(IO)/ready: $(PACKAGE) tests/oldest.txt
	$(PYTHON) -m venv $(IO)
	$(IO)/bin/python $(PIP) -e '.[test,io]' -c tests/oldest.txt
	touch $@

$(FRAMEWORKS)/ready: $(PACKAGE) tests/requirements/frameworks.txt
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python $(PIP) -e '.[jax,torch]' -r tests/requirements/frameworks.txt
	touch $@

# The environments of the benchmarks: packages with conflicting requirements have one each.
$(BENCH)/ready: $(PACKAGE)

.PRECIOUS: .venvs/%/ready
.venvs/%/ready: benchmarks/requirements/%.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python $(PIP) -r $<
	touch $@

.venvs/%/ready: tests/requirements/%.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python $(PIP) -r $<
	touch $@

# Where npm cannot install it, the tests that need it are skipped, with the reason.
.venvs/azurite/ready: tests/requirements/azurite.json
	mkdir -p .venvs/azurite
	cp $< .venvs/azurite/package.json
	cd .venvs/azurite && npm install --silent --no-audit --no-fund || echo "no azurite: tests of Azure are skipped"
	touch $@

clean:
	rm -rf .venv .venvs .pytest_cache .mypy_cache .ruff_cache build dist pipelines/*.egg-info
