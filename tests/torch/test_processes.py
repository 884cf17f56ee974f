"""What shows only in a process of its own: logs by environment, exhausted memory, workers, torch's code cache."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3)).eval()
x = torch.randn(1, 3, 12, 12)
"""


def run(program, tmp_path, **environment):
    """Runs the program after MODEL; its output, errors included."""
    settings = {**os.environ, "SOFTNEURO_CACHE_DIR": str(tmp_path / "costs"), "PYTHONWARNINGS": "ignore", **environment}
    settings["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-c", MODEL + textwrap.dedent(program)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


CALL = """
    compiled = torch.compile(model, backend="softneuro", options={"tune": "off", "never_worse": False})
    with torch.no_grad():
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
"""


def test_torch_logs(tmp_path):
    assert "region" not in run(CALL, tmp_path)
    output = run(CALL, tmp_path, TORCH_LOGS="+softneuro.torch_backend")
    assert "torch_backend/compile/host/apart.py" in output
    assert "3 ops" in output


@pytest.mark.parametrize("verbose", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_option_verbose(tmp_path, verbose):
    """Results and each layer's best, then each candidate too."""
    output = run(CALL.replace('"tune": "off"', f'"verbose": {verbose}'), tmp_path)
    assert "3 ops" in output
    assert "planned" in output
    assert "the best of" in output
    assert (output.count("us conv2d/") > 4) == (verbose == 3)


def test_memory_that_runs_out_in_preparation(tmp_path):
    """The packed weights do not fit below the limit on address space: the host goes on."""
    output = run(
        """
        import resource
        import softneuro
        from softneuro.torch_backend import registry
        wide = nn.Sequential(nn.Linear(8192, 8192), nn.ReLU()).eval()
        x = torch.randn(1, 8192)
        compiled = torch.compile(wide, backend="softneuro", options={"tune": "off", "never_worse": False})
        from softneuro.torch_backend.call.unready import Call
        lower, instead, forever = Call.lower, Call.run_instead, resource.RLIM_INFINITY

        def limited(call):
            lowered = lower(call)
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), forever))
            return lowered

        def unlimited(call):
            resource.setrlimit(resource.RLIMIT_AS, (forever, forever))
            instead(call)

        Call.lower, Call.run_instead = limited, unlimited
        with torch.no_grad():
            assert torch.equal(compiled(x), wide(x))
            assert torch.equal(compiled(x), wide(x))
        print([shaped.host for region in registry.all_regions() for shaped in region.shaped.values()])
        """,
        tmp_path,
    )
    assert "out of memory" in output
    assert "the host runs it" in output


class Images(torch.utils.data.Dataset):
    """Images that a compiled model has transformed."""

    def __init__(self, compiled):
        self.compiled = compiled

    def __len__(self):
        return 6

    def __getitem__(self, index):
        with torch.no_grad():
            return self.compiled(torch.full((1, 3, 12, 12), float(index)))[0]


def test_data_loader_workers(compile_model):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU()).eval()
    images = Images(compile_model(model))
    with torch.no_grad():
        expected = torch.stack([model(torch.full((3, 12, 12), float(i))) for i in range(6)])
        images[0]
    loader = torch.utils.data.DataLoader(images, batch_size=3, num_workers=2, timeout=100)
    torch.testing.assert_close(torch.cat(list(loader)), expected)


@pytest.mark.slow
def test_code_that_inductor_has_cached(tmp_path):
    """A second process runs code from torch's cache on disk: handles in it must name the same regions."""
    program = """
        def function(x):
            return model(x.flip(2)).flip(1)
        other = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3)).eval()
        for each in (function, lambda x: other(x.flip(2)).flip(1)):
            compiled = torch.compile(each, backend="softneuro", options={"host": "inductor"})
            with torch.no_grad():
                for size in (12, 15, 12):
                    x = torch.randn(2, 3, size, size)
                    assert torch.allclose(compiled(x), each(x), atol=1e-4)
        from torch._dynamo.utils import counters
        print(counters["inductor"]["fxgraph_cache_hit"], "cached")
    """
    hits = [int(run(program, tmp_path, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "code")).split()[-2]) for _ in range(2)]
    assert hits[1] > hits[0]


def test_fork_while_another_thread_prepares(tmp_path):
    """The fork does not wait for the net, which waits for Python; the child does without."""
    output = run(
        """
        import os, threading, time
        from softneuro.torch_backend.call.unready import Call
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
        compiled = torch.compile(model, backend="softneuro", options={"tune": "off", "never_worse": False})
        x, lower, begun, forked = torch.randn(1, 8), Call.lower, threading.Event(), threading.Event()

        def slow(call):
            begun.set()
            assert forked.wait(60)
            return lower(call)

        Call.lower = slow

        def work():
            with torch.no_grad():
                assert torch.equal(compiled(x).isfinite(), model(x).isfinite())

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        child = os.fork()
        if child == 0:
            os._exit(0)
        forked.set()
        thread.join()
        assert os.waitpid(child, 0)[1] == 0
        print("both went on")
        """,
        tmp_path,
    )
    assert "both went on" in output
