"""Hooks: foreign code at named points of a call, in five shapes, under contracts of twelve parts."""

from modtools.pipeline.hooks.answer import HookAnswer, Refusal
from modtools.pipeline.hooks.composition import Hooks
from modtools.pipeline.hooks.contract import Event, HookContract, HookPoint
from modtools.pipeline.hooks.shapes import SHAPES, Hook, Interceptor, Listener, Middleware, PolicyGate
from modtools.pipeline.hooks.trace import HookTrace

__all__ = [
    "SHAPES", "Event", "Hook", "HookAnswer", "HookContract", "HookPoint", "HookTrace", "Hooks", "Interceptor",
    "Listener", "Middleware", "PolicyGate", "Refusal",
]  # fmt: skip
