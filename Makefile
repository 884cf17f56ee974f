# Everything happens in .venv, which is made on first use. PYTHON chooses the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
WATCH := $(PY) .ci/watch.py
# A worker that crashes ends the run: with another in its place pytest-xdist may wait for ever.
# Who has done his work takes what the other has last in its list, which begins with the longest (tests/conftest.py).
PYTEST := $(PY) -m pytest -n 2 --max-worker-restart 0 --dist worksteal
CXX_FILES := git ls-files '*.cc' '*.h'

.PHONY: install test quick durations demo bench lint typecheck format check-extra lower-levels slow sanitize arm clean

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

# INSTALLED=1 says that nothing has changed since: .ci/run installs once.
ifdef INSTALLED
install: ;
else
install: $(VENV)/.requirements
	@SOFTNEURO_TORCH=1 $(WATCH) 'building softneuro' 'at first some six minutes' \
	$(PIP) install -v --no-build-isolation -e '.[test]'
endif

test: install
	$(PYTEST) -m 'not slow'

# For the hand: lint of what was changed, and tests of it, as far as a minute and a half goes. .ci/run is what has to pass.
quick: install
	$(PY) .ci/quick.py

# Renews what is known of how long tests take.
durations: install
	$(PYTEST) -m 'not slow' --junitxml=build/durations.xml
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m slow --junitxml=build/durations-slow.xml
	$(PY) .ci/durations.py build/durations.xml build/durations-slow.xml

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
	SOFTNEURO_TEST_EXAMPLES=30 SOFTNEURO_MAX_ISA=scalar $(PYTEST) -m 'not slow' tests/layers
	SOFTNEURO_TEST_EXAMPLES=30 SOFTNEURO_MAX_ISA=avx2 $(PYTEST) -m 'not slow' tests/layers

slow: install
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m slow

sanitize: install
	.ci/sanitize

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
	$(PYTEST) -k 'not thread_pool' tests/house/test_cxx.py

clean:
	rm -rf build dist *.egg-info ext/*.so providers/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
