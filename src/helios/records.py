"""Frozen dataclasses whose methods are written when they are first called.

`dataclasses` writes and compiles six methods for every class while it is defined. A server defines
some two hundred classes before it listens and calls the methods of few, so that took a quarter of
all its imports. Here the methods of a frozen dataclass begin as stubs; the first call of one has
`dataclasses` write it, and from then on it is what it would have been.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from collections.abc import Callable
    from dataclasses import FrozenInstanceError

    # What the library is told to write of a class when one of its methods is called.
    _PARTS = {
        "__init__": {"repr": False, "eq": False},
        "__repr__": {"init": False, "eq": False},
        "__eq__": {"init": False, "repr": False},
        "__hash__": {"init": False, "repr": False},
    }
    _DEFERRED = {"frozen", "slots", "weakref_slot"}

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`; frozen ones without a base that is one are deferred."""

        def decorate(cls: type) -> type:
            plain = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
            if plain or not options.get("frozen") or not _DEFERRED.issuperset(options):
                return dataclasses.dataclass(cls, **options)
            return _deferred(cls, {name: on for name, on in options.items() if name != "frozen"})

        return decorate if cls is None else decorate(cls)

    @dataclasses.dataclass(frozen=True)
    class _Frozen:
        """What frozen classes say of themselves."""

    def _deferred(cls: type, options: dict[str, bool]) -> type:
        own = dict(vars(cls))
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # or a signature is made up, slowly
        made = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
        made.__dataclass_params__ = _Frozen.__dataclass_params__
        write = _writer(made, own)
        for name in _PARTS:
            if own.get(name) is None:
                setattr(made, name, _stub(made, name, write))
        _freeze(made, own)
        return made

    def _writer(made: type, own: dict[str, Any]) -> Callable[[str], Any]:
        """What has `dataclasses` write one method of a class."""
        given = own.get("__annotations__", {})
        body = {name: own[name] for name in given if name in own}
        body |= {"__annotations__": given, "__module__": made.__module__}
        body |= {"__qualname__": made.__qualname__, "__doc__": made.__doc__}
        if hasattr(made, "__post_init__"):
            body["__post_init__"] = made.__post_init__

        def write(name: str) -> Any:
            # Its code names nothing of the class that it is made on.
            twin = type(made.__name__, (), dict(body))
            return vars(dataclasses.dataclass(frozen=True, **_PARTS[name])(twin))[name]

        return write

    def _stub(made: type, name: str, write: Callable[[str], Any]) -> Callable[..., Any]:
        def stub(*operands: Any, **named: Any) -> Any:
            method = write(name)
            setattr(made, name, method)
            return method(*operands, **named)

        stub.__name__ = name
        stub.__qualname__ = f"{made.__qualname__}.{name}"
        return stub

    def _freeze(made: type, own: dict[str, Any]) -> None:
        """Refuse assignment as `dataclasses` does, and let copies be made all the same."""
        names = tuple(f.name for f in dataclasses.fields(made))
        known = frozenset(names)

        def set_attribute(self: Any, name: str, value: Any) -> None:
            if type(self) is made or name in known:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(made, self).__setattr__(name, value)

        def delete_attribute(self: Any, name: str) -> None:
            if type(self) is made or name in known:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(made, self).__delattr__(name)

        def get_state(self: Any) -> list[Any]:
            return [getattr(self, name) for name in names]

        def set_state(self: Any, state: list[Any]) -> None:
            for name, value in zip(names, state, strict=True):
                object.__setattr__(self, name, value)

        methods = {"__setattr__": set_attribute, "__delattr__": delete_attribute}
        if "__slots__" in vars(made):
            methods |= {"__getstate__": get_state, "__setstate__": set_state}
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
