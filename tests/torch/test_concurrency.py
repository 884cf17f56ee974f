"""Several threads, forked processes, and how many threads a region uses."""

import multiprocessing
import threading

import torch


def test_eight_threads(model, compile_model):
    compiled = compile_model(model)
    inputs = [torch.randn(1, 3, 12, 12) for _ in range(8)]
    with torch.no_grad():
        compiled(inputs[0])
        expected = [model(x) for x in inputs]
    failures = []

    def work(i):
        try:
            with torch.no_grad():
                for _ in range(50):
                    torch.testing.assert_close(compiled(inputs[i]), expected[i])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_first_calls_from_many_threads(model, compile_model, entries):
    compiled = compile_model(model, dynamic=True)
    sizes = [12, 13, 14, 15]
    failures = []

    def work(size):
        try:
            x = torch.randn(2, 3, size, size)
            with torch.no_grad():
                torch.testing.assert_close(compiled(x), model(x))
        except Exception as error:
            failures.append(error)

    with torch.no_grad():
        compiled(torch.randn(2, 3, 20, 20))
    threads = [threading.Thread(target=work, args=(size,)) for size in sizes * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _child(compiled, x, expected, queue):
    torch.set_num_threads(1)  # as a DataLoader's worker does
    with torch.no_grad():
        queue.put(bool(torch.allclose(compiled(x), expected, atol=1e-5)))


def test_fork(model, compile_model):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        expected = compiled(x).clone()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(compiled, x, expected, queue))
    child.start()
    try:
        assert queue.get(timeout=60)
    finally:
        child.join(10)
        child.kill()


def test_set_num_threads(model, compile_model, agree):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 32, 32)
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            agree(compiled, model, x)
    finally:
        torch.set_num_threads(before)


def test_option_threads(model, compile_model, agree):
    agree(compile_model(model, threads=1), model, torch.randn(1, 3, 32, 32))
