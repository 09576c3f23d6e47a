"""Finds the backends: entry points of the group `acp_manifold.backends`, so that anyone can add one.

Those of the group `acp_manifold.backends.on_request` are served only when they are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from .backend import Backend
from .errors import BridgeError
from .plugins import Plugin, plugins

GROUP = "acp_manifold.backends"
ON_REQUEST = "acp_manifold.backends.on_request"


class NoBackend(BridgeError):
    """No CLI is there to serve a session; the message says what to install."""


def split(name: str) -> tuple[str, str | None]:
    """A name as it is asked for: the backend's, and what stands behind the colon for one that wants to be told more."""
    backend, colon, argument = name.partition(":")
    return backend, argument if colon else None


def wanted_plugins(names: Sequence[str]) -> list[Plugin]:
    """The entry points of the backends asked for, in order; none means all, by name,
    but for those that are served only when named.

    Raises:
        NoBackend: A name is unknown.
    """
    names = [split(name)[0] for name in names]
    known = plugins(GROUP)
    if any(name not in known for name in names):
        known = {**plugins(ON_REQUEST), **known}
    for name in names:
        if name not in known:
            raise NoBackend(f"no backend is called {name!r}; there are: {', '.join(sorted(known)) or 'none'}")
    return [known[name] for name in list(dict.fromkeys(names)) or sorted(known)]


def backend_names() -> str:
    """The names there are, for help texts."""
    default, on_request = sorted(plugins(GROUP)), sorted(plugins(ON_REQUEST))
    named = f"; only when named: {', '.join(on_request)}" if on_request else ""
    return f"{', '.join(default)}{named}"


def plugin_backend(plugin: Plugin) -> Backend:
    """The backend behind an entry point, whether or not its CLI is installed; raises what `Plugin.load` raises."""
    made = plugin.load()
    if not isinstance(made, type):
        raise NoBackend(f"the backend {plugin.name} needs to be told what: --backend {plugin.name}:...")
    # An entry point is untyped; what it names promises to be a Backend.
    return cast(Backend, made())


def _refuse_one_store(backends: Sequence[Backend]) -> None:
    """Each session of the store would be listed by both, and could be run by both."""
    owners: dict[str, Backend] = {}
    for backend in backends:
        other = owners.setdefault(backend.store_of, backend)
        if other is not backend:
            raise NoBackend(
                f"{other.name} and {backend.name} have the same sessions: serve one of them, "
                f"with --backend {other.name} or --backend {backend.name}"
            )


def _told(names: Sequence[str], told: str, plugin: Plugin) -> Sequence[Backend]:
    """The backends that an entry point makes of what stands behind the colon; the process is theirs alone."""
    name, argument = split(told)
    if len(names) > 1:
        raise NoBackend(f"{told} is served alone: name no other backend beside it")
    if name in plugins(GROUP):
        raise NoBackend(f"the backend {name} takes nothing behind a colon: --backend {name}")
    made = plugin.load()
    if isinstance(made, type) or not callable(made):
        raise NoBackend(f"the backend {name} takes nothing behind a colon: --backend {name}")
    # An entry point is untyped; what it names promises to make backends.
    return cast("Callable[[str], Sequence[Backend]]", made)(argument or "")


def find_backends(names: Sequence[str] = ()) -> list[Backend]:
    """The backends to serve, the default one first.

    Args:
        names: The backends asked for, in order; none means every one whose CLI is installed, by name.

    Raises:
        NoBackend: A name is unknown, its CLI or every CLI is missing, or two of them have one store.
    """
    plugged = wanted_plugins(names)
    told = next((name for name in names if split(name)[1] is not None), None)
    loaded = [plugin_backend(plugin) for plugin in plugged] if told is None else _told(names, told, plugged[0])
    _refuse_one_store(loaded)
    installed = [backend for backend in loaded if backend.program() is not None]
    missing = [backend for backend in loaded if backend not in installed]
    if missing and (names or not installed):
        hints = "".join(f"\n  {backend.label}: {backend.install_hint}" for backend in missing)
        which = "this CLI" if len(missing) == 1 else "these" if names else "one of these"
        raise NoBackend(f"no coding CLI was found for {', '.join(b.name for b in missing)}; install {which}:{hints}")
    if not installed:
        raise NoBackend("no backend is installed: install acp-manifold with its adapters")
    return installed
