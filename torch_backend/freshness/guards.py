"""Dynamo's guards on modules and parameters, asked again only after something that they read has changed.

A model has thousands of them: that each module on the way to a parameter is of its class, that strides and paddings
are what they were. What they read is in modules' dictionaries and in tensors. While these dictionaries hold
the same objects, and the tensors among them are of the same shape and kind, every one of these guards holds as it did.

Dynamo still makes the same guards, but into a tree of their own. In Dynamo's own tree there is one instead that asks
whether anything has changed, and if so that tree. Guards that read anything else stay where they were, all of them if
this version of Dynamo is not as expected here.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.source import LocalSource
from torch._guards import Guard, TracingContext

from softneuro.torch_backend import _native
from softneuro.torch_backend.freshness.paths import CONSTANTS, Paths, Step, root_of
from softneuro.torch_backend.freshness.tensors import kinds_of

log = logging.getLogger("softneuro.torch_backend")

# By what they are on, the guards that read no more than this keeps the same: a module's class and dictionary, a
# dictionary's items, what a TensorGuards looks at, and values that cannot change.
_GUARDS = {
    "module": {"TYPE_MATCH", "NOT_PRESENT_IN_GENERIC_DICT"},
    "dict": {"TYPE_MATCH", "SEQUENCE_LENGTH", "DICT_KEYS_MATCH", "DICT_CONTAINS", "DICT_NOT_CONTAINS"},
    "tensor": {"TYPE_MATCH", "TENSOR_MATCH"},
    "constant": {"TYPE_MATCH", "CONSTANT_MATCH", "EQUALS_MATCH", "BOOL_MATCH", "NONE_MATCH", "SEQUENCE_LENGTH"},
}
_CANDIDATES = set().union(*_GUARDS.values())
_LONGEST_WAIT = 1024


@dataclass
class Seen:
    """A root module for which the guards held."""

    root: weakref.ref[torch.nn.Module]  # ends the entry
    state: _native.ObjectState | None = None
    wait: int = 0  # times that the guards are to be asked before the state is taken again
    next_wait: int = 0


@dataclass
class RootWatch:
    """The guard on one of a frame's variables, once Dynamo has made it."""

    guard: ModulesUnchanged | None = None

    def state(self, root: torch.nn.Module) -> _native.ObjectState | None:
        """The module's, for which the guards held."""
        seen = self.guard.all_seen.get(id(root)) if self.guard is not None else None
        return seen.state if seen is not None else None


# What is watched for one frame that is compiled.
Watch = dict[LocalSource, RootWatch]


class ModulesUnchanged:
    """The one guard in the place of many, on the module from which all that they read is reached.

    Compiled code may be shared by modules of one class, so the root need not be the one that was compiled.
    """

    def __init__(self, name: str, steps: list[Step], guards: Any, watch: RootWatch) -> None:
        self._name, self._steps, self._guards, self._watch = name, steps, guards, watch
        self.all_seen: dict[int, Seen] = {}  # by the module's id

    def __call__(self, root: Any) -> bool:
        """Whether all those guards hold."""
        seen = self.all_seen.get(id(root))
        state = seen.state if seen is not None else None
        if state is not None and state.unchanged():
            return True
        if not self._guards.check({self._name: root}):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("guards: %s", self._guards.root.check_verbose({self._name: root}))
            return False
        self._note(root, seen)
        return True

    def _note(self, root: torch.nn.Module, seen: Seen | None) -> None:
        """Takes the state of a module for which the guards hold; less and less often if it never stays the same."""
        if seen is None:
            key, all_seen = id(root), self.all_seen

            def forget(_: Any) -> None:
                all_seen.pop(key, None)

            seen = all_seen[key] = Seen(weakref.ref(root, forget))
        elif seen.state is not None and seen.state.hits:
            seen.wait = seen.next_wait = 0
        seen.state = None
        if seen.wait:
            seen.wait -= 1
            return
        seen.wait = seen.next_wait
        seen.next_wait = min(2 * seen.next_wait + 1, _LONGEST_WAIT)
        try:
            state = self._state(root)
            # Another thread may have changed the model since the guards were asked.
            if state.confirmed(self._guards.root.check, {self._name: root}):
                seen.state = state
        except Exception as error:
            log.debug("guards: all of them at every call: %s", error)
            seen.wait = _LONGEST_WAIT

    def _state(self, root: torch.nn.Module) -> _native.ObjectState:
        state = _native.ObjectState(CONSTANTS)
        state.add_instance(root)
        values: list[Any] = [root]
        tensors: dict[int, torch.Tensor] = {}
        for step in self._steps:
            value = step.take(values)
            values.append(value)
            if step.kind == "module":
                state.add_instance(value)
            elif step.kind == "dict":
                state.add_dict(value)
            elif step.kind == "tensor":
                tensors[id(value)] = value
        state.set_tensors(kinds_of(list(tensors.values())))
        return state


class _Apart:
    """Where guards on one root module are made, while Dynamo's builder is at work, which must not live longer."""

    def __init__(self, builder: GuardBuilder, root: LocalSource, watch: RootWatch) -> None:
        made_by: Any = builder.check_fn_manager
        nothing = type(builder.guard_manager.diff_guard_sources)()
        self._inner, guards = made_by.build_guards([], nothing, builder.f_code, made_by.output_graph, False)
        # What the guards' maker reads of its builder in the end.
        self._inner.id_matched_objs = builder.id_matched_objs
        self._inner.argnames, self._inner.code = builder.argnames, builder.code
        self._paths = Paths(root, builder.get(root))
        watch.guard = guard = ModulesUnchanged(root.local_name, self._paths.steps, guards, watch)
        text = f"nothing under {root.name} has changed, or the guards on it hold"
        builder.get_guard_manager_from_source(root).add_lambda_guard(guard, [text], None)

    def take(self, builder: GuardBuilder, guard: Guard, create: Callable[..., None]) -> bool:
        """Makes the guard here. False if it may read what a state does not tell, and is to be made where it was."""
        found = self._paths.find(guard.originating_source)
        if found is None or guard.create_fn_name() not in _GUARDS[found[1]]:
            return False
        if builder.get(guard) is not found[0]:
            return False
        told = [list(texts) if texts is not None else None for texts in (guard.guard_types, guard.code_list)]
        create(self._inner, guard)
        aliases = self._inner.no_tensor_aliasing_names
        if not aliases:
            return True
        # It is also one of those that compare tensors with each other.
        aliases.clear()
        self._inner.no_tensor_aliasing_guard_managers.clear()
        guard.guard_types, guard.code_list = told
        return False


class _MadeApart:
    """A guard's own function to make it, which makes it apart where that is possible."""

    def __init__(self, create: Callable[..., None], root: LocalSource, watch: RootWatch) -> None:
        self._create, self._root, self._watch = create, root, watch

    @property
    def __name__(self) -> str:
        return self._create.__name__

    @property
    def __code__(self) -> CodeType:  # Dynamo sorts by the line where it is defined
        return self._create.__code__

    def __call__(self, builder: GuardBuilder, guard: Guard, **keywords: Any) -> None:
        create = functools.partial(self._create, **keywords)
        try:
            apart = self._apart(builder)
            taken = apart is not None and apart.take(builder, guard, create)
        except Exception as error:
            log.debug("guards: %s is made as ever: %s: %s", guard.name, type(error).__name__, error)
            taken = False
        if not taken:
            create(builder, guard)

    def _apart(self, builder: GuardBuilder) -> _Apart | None:
        known: dict[LocalSource, _Apart | None] = builder.__dict__.setdefault("_softneuro_apart", {})
        if self._root not in known:
            known[self._root] = None  # also if it fails
            if isinstance(builder.get(self._root), torch.nn.Module):
                known[self._root] = _Apart(builder, self._root, self._watch)
        return known[self._root]


def make_apart() -> Watch:
    """Has the guards on modules made apart, of the frame that Dynamo is compiling in this thread."""
    watch: Watch = {}
    context = TracingContext.try_get()
    config = torch._dynamo.config
    # One writes guards into files, the other passes over parts of Dynamo's tree, not knowing what ours stands for.
    if context is None or config.caching_precompile or config.use_recursive_dict_tags_for_guards:
        return watch
    for guard in context.guards_context.dynamo_guards.inner:
        try:
            _make_apart(guard, watch)
        except Exception as error:
            log.debug("guards: one is made as ever: %s: %s", type(error).__name__, error)
    return watch


def _make_apart(guard: Guard, watch: Watch) -> None:
    root = root_of(guard.originating_source)
    if root is None or guard.originating_source is root or guard.create_fn_name() not in _CANDIDATES:
        return
    create = guard.create_fn
    if isinstance(guard.inner_create_fn(), _MadeApart):
        return
    on_root = watch.setdefault(root, RootWatch())
    if not isinstance(create, functools.partial):
        guard.create_fn = _MadeApart(create, root, on_root)
    elif not create.args:
        guard.create_fn = functools.partial(_MadeApart(create.func, root, on_root), **create.keywords)
