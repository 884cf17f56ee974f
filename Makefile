# Everything happens in .venv, which is made on first use. PYTHON chooses the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
WATCH := $(PY) .ci/watch.py
CXX_FILES := git ls-files '*.cc' '*.h'

.PHONY: install test demo bench lint typecheck format check-extra lower-levels slow sanitize arm clean

# The environment is remade when its requirements change; the build itself is incremental and quick to repeat.
$(VENV)/.requirements: Makefile pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "softneuro needs Python 3.10 or newer; set PYTHON=<path>"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || { echo "softneuro needs a C++20 compiler, for instance g++ 11 or newer; set CXX=<path>"; exit 1; }
	@echo "setting up $(VENV): some seconds"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -q --upgrade pip 'rich>=13'
	@$(WATCH) 'build tools and PyTorch' 'a large download' \
	$(PIP) install 'setuptools>=77' wheel 'cmake>=3.24' ninja 'pybind11>=2.13' torch==2.13.0 pillow
	@$(PIP) install -q --no-deps torchvision==0.28.0
	@touch $@

install: $(VENV)/.requirements
	@SOFTNEURO_TORCH=1 $(WATCH) 'building softneuro' 'at first some six minutes' \
	$(PIP) install -v --no-build-isolation -e '.[test]'

test: install
	$(PY) -m pytest -n 2 -m 'not slow'

demo: install
	$(PY) -m benchmarks.demo

bench: install
	@$(WATCH) 'the peers to compare with' 'a minute or two' $(PIP) install --no-build-isolation -e '.[bench]'
	$(PY) -m benchmarks.networks

lint: install typecheck
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(CXX_FILES) | xargs $(VENV)/bin/clang-format --dry-run --Werror

# mypy does not see through an editable install, so the package is shown to it as links.
typecheck:
	rm -rf build/typed && mkdir -p build/typed/softneuro
	ln -s $(CURDIR)/ext/* $(CURDIR)/torch_backend $(CURDIR)/providers build/typed/softneuro/
	MYPYPATH=build/typed $(PY) -m mypy -p softneuro

format: $(VENV)/.requirements
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(CXX_FILES) | xargs $(VENV)/bin/clang-format -i

# What is too slow for every test run: the lower instruction sets, packages built from copies,
# sanitizers, ARM by emulation.
check-extra: install lower-levels slow sanitize arm

lower-levels: install
	SOFTNEURO_MAX_ISA=scalar $(PY) -m pytest -n 2 -m 'not slow' tests/layers
	SOFTNEURO_MAX_ISA=avx2 $(PY) -m pytest -n 2 -m 'not slow' tests/layers

slow: install
	$(PY) -m pytest -n 2 --dist loadfile -m slow

# Addresses and undefined behaviour over the core, its C++ tests and the Python tests that need no host, then over the
# library for ONNX Runtime. Data races over the thread pool, and over sessions that many threads use. The hosts' own code
# is not built for it.
SANITIZED := $(CURDIR)/build/sanitized
RACES := $(CURDIR)/build/races
DOOR := backend_models bad_input control_flow custom_ops ep_context odd_models ops sessions
BUILT = $(CURDIR)/build/$(shell $(PY) -c 'import sys, sysconfig; print("cmake-%s-%s" % (sysconfig.get_platform(), sys.implementation.cache_tag))')
# Python itself leaks at exit; what cannot be had is tested for.
ASAN := detect_leaks=0:allocator_may_return_null=1
RUN_SANITIZED = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=$(ASAN) PYTHONPATH=$(SANITIZED)/site SOFTNEURO_TEST_EXAMPLES=5 $(PY) -m pytest -n 2 -m 'not slow'
sanitize: install
	SOFTNEURO_BUILD_DIR=$(SANITIZED) SOFTNEURO_TORCH=0 \
	CMAKE_ARGS='-DSOFTNEURO_SANITIZE=address,undefined -DCMAKE_CXX_FLAGS_RELEASE=-O1' \
	$(PIP) install -q --no-build-isolation --no-deps --upgrade --target $(SANITIZED)/site .
	SOFTNEURO_BUILD_DIR=$(SANITIZED) ASAN_OPTIONS=$(ASAN) $(PY) -m pytest -n 2 tests/house/test_cxx.py
	$(RUN_SANITIZED) tests/layers tests/graph tests/net tests/tune
	$(RUN_SANITIZED) -k 'not out_of_memory' $(DOOR:%=tests/providers/test_%.py)
	mkdir -p $(SANITIZED)/thread
	set -e; for test in thread_pool_test team_test; do \
	$${CXX:-c++} -std=c++20 -O1 -g1 -fsanitize=thread -pthread -Icsrc csrc/base/*.cc csrc/tests/$$test.cc -o $(SANITIZED)/thread/$$test; \
	TSAN_OPTIONS=die_after_fork=0 $(SANITIZED)/thread/$$test; done
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake -S csrc -B $(RACES) -GNinja -DSOFTNEURO_SANITIZE=thread \
	-DSOFTNEURO_REST_FROM=$(BUILT) -DSOFTNEURO_VERSION=0.0.0 -DSOFTNEURO_PYTHON=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O1 >/dev/null
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build $(RACES) --target softneuro_ort
	SOFTNEURO_ORT_LIBRARY=$(RACES)/lib/libsoftneuro_ort.so CXXFLAGS='-O1 -g1 -fsanitize=thread' \
	$(PY) -m pytest tests/providers/test_concurrency.py

# The C++ tests for AArch64, cross-compiled and run by an emulator: right or wrong, never how fast. The
# pool's test forks and watches clocks, which the emulator does in its own way.
AARCH64 := $(CURDIR)/build/aarch64
arm: install
	@command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq g++-aarch64-linux-gnu qemu-user; } || \
	{ echo "make arm needs aarch64-linux-gnu-g++ and qemu-aarch64 (Debian: g++-aarch64-linux-gnu qemu-user)"; exit 1; }
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake -S csrc -B $(AARCH64) -GNinja -DCMAKE_SYSTEM_NAME=Linux \
	-DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
	-DSOFTNEURO_PYTHON=OFF -DSOFTNEURO_ORT=OFF -DSOFTNEURO_PCH=OFF >/dev/null
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build $(AARCH64) --target cxx_tests
	SOFTNEURO_BUILD_DIR=$(AARCH64) SOFTNEURO_EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	$(PY) -m pytest -n 2 -k 'not thread_pool' tests/house/test_cxx.py

clean:
	rm -rf build dist *.egg-info ext/*.so providers/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
