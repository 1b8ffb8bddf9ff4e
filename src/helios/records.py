"""Frozen dataclasses that cost little to define.

`dataclasses` writes and compiles six methods for every class while it is defined. A server defines
some two hundred classes before it listens and makes objects of half of them, so that took a
quarter of all its imports. Here comparing, hashing and showing are functions that need no
compiling; and `__init__` begins as a stub that sets fields one by one, which writes itself once a
class turns out to have many objects.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from collections.abc import Callable, Sequence
    from dataclasses import MISSING, Field, FrozenInstanceError, InitVar
    from operator import attrgetter
    from reprlib import recursive_repr

    _KNOWN = {"frozen", "slots", "weakref_slot"}
    _FEW = 20  # objects of a class that are made faster than the code that makes them is compiled

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`; frozen ones without a base that is one are made here."""

        def decorate(cls: type) -> type:
            plain = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
            if plain or not options.get("frozen") or not _KNOWN.issuperset(options):
                return dataclasses.dataclass(cls, **options)
            return _made(cls, {name: on for name, on in options.items() if name != "frozen"})

        return decorate if cls is None else decorate(cls)

    @dataclasses.dataclass(frozen=True)
    class _Frozen:
        """What frozen classes say of themselves."""

    def _made(cls: type, options: dict[str, bool]) -> type:
        own = dict(vars(cls))
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # or a signature is made up, slowly
        made = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
        made.__dataclass_params__ = _Frozen.__dataclass_params__
        fields = dataclasses.fields(made)
        methods = {"__init__": _init_stub(made, own), "__repr__": _repr(fields)}
        methods |= {"__eq__": _equal(fields), "__hash__": _hash(fields)}
        methods |= {"__setattr__": _refusal(made, fields), "__delattr__": _deletion(made, fields)}
        if "__slots__" in vars(made):
            methods |= _state(fields)
        for name, method in methods.items():
            if own.get(name) is None:
                method.__name__ = name
                method.__qualname__ = f"{made.__qualname__}.{name}"
                setattr(made, name, method)
        return made

    def _init_stub(made: type, own: dict[str, Any]) -> Callable[..., None]:
        fields = dataclasses.fields(made)
        ordered = [f.name for f in fields if f.init and not f.kw_only]
        known = frozenset(f.name for f in fields if f.init)
        initial = any(isinstance(k, InitVar) for k in own.get("__annotations__", {}).values())
        settle = getattr(made, "__post_init__", None)
        left = 0 if initial else _FEW

        def stub(self: Any, *operands: Any, **named: Any) -> None:
            nonlocal left
            left -= 1
            if left >= 0 and len(operands) <= len(ordered) and known.issuperset(named):
                given = dict(zip(ordered, operands, strict=False))
                if given.keys().isdisjoint(named) and _fill(self, fields, given | named):
                    if settle is not None:
                        settle(self)
                    return
            method = _library_init(made, own) if initial else _init(made)
            method.__qualname__ = f"{made.__qualname__}.__init__"
            made.__init__ = method
            method(self, *operands, **named)

        return stub

    def _fill(self: Any, fields: Sequence[Field[Any]], given: dict[str, Any]) -> bool:
        """Set all fields; False, and none is set, where one that has no default is missing."""
        values = []
        for field in fields:
            if field.name in given:
                values.append((field.name, given[field.name]))
            elif field.default_factory is not MISSING:
                values.append((field.name, field.default_factory()))
            elif field.default is not MISSING:
                values.append((field.name, field.default))
            elif field.init:
                return False
        for name, value in values:
            object.__setattr__(self, name, value)
        return True

    def _init(made: type) -> Callable[..., None]:
        """What `dataclasses` would write, in a fifth of the time."""
        names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
        positional, keywords, body = [], [], []
        for index, field in enumerate(dataclasses.fields(made)):
            value = field.name
            made_anew = field.default_factory is not MISSING
            default = f"_default{index}"
            names[default] = field.default_factory if made_anew else field.default
            if field.init:
                parameter = field.name
                if made_anew:
                    parameter += "=_missing"
                    value = f"{default}() if {field.name} is _missing else {field.name}"
                elif field.default is not MISSING:
                    parameter += f"={default}"
                (keywords if field.kw_only else positional).append(parameter)
            elif made_anew:
                value = f"{default}()"
            elif field.default is not MISSING:
                value = default
            else:
                continue
            body.append(f"_set(self, {field.name!r}, {value})")
        if hasattr(made, "__post_init__"):
            body.append("self.__post_init__()")
        parameters = ["self", *positional, *(["*", *keywords] if keywords else [])]
        exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), names)
        return names["__init__"]

    def _library_init(made: type, own: dict[str, Any]) -> Callable[..., None]:
        given = own["__annotations__"]
        body = {name: own[name] for name in given if name in own}
        body |= {"__annotations__": given, "__module__": made.__module__, "__doc__": made.__doc__}
        if hasattr(made, "__post_init__"):
            body["__post_init__"] = made.__post_init__
        # Its code names nothing of the class that it is made on.
        twin = type(made.__name__, (), body)
        return vars(dataclasses.dataclass(frozen=True, repr=False, eq=False)(twin))["__init__"]

    def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple([getattr(self, name) for name in names])

    def _equal(fields: Sequence[Field[Any]]) -> Callable[[Any, Any], Any]:
        values = _values([f.name for f in fields if f.compare])

        def equal(self: Any, other: Any) -> Any:
            return (
                values(self) == values(other)
                if other.__class__ is self.__class__
                else NotImplemented
            )

        return equal

    def _hash(fields: Sequence[Field[Any]]) -> Callable[[Any], int]:
        values = _values([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
        return lambda self: hash(values(self))

    def _repr(fields: Sequence[Field[Any]]) -> Callable[[Any], str]:
        names = [f.name for f in fields if f.repr]

        def told(self: Any) -> str:
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            return f"{self.__class__.__qualname__}({shown})"

        return recursive_repr()(told)

    def _refusal(made: type, fields: Sequence[Field[Any]]) -> Callable[[Any, str, Any], None]:
        known = frozenset(f.name for f in fields)

        def set_attribute(self: Any, name: str, value: Any) -> None:
            if type(self) is made or name in known:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(made, self).__setattr__(name, value)

        return set_attribute

    def _deletion(made: type, fields: Sequence[Field[Any]]) -> Callable[[Any, str], None]:
        known = frozenset(f.name for f in fields)

        def delete_attribute(self: Any, name: str) -> None:
            if type(self) is made or name in known:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(made, self).__delattr__(name)

        return delete_attribute

    def _state(fields: Sequence[Field[Any]]) -> dict[str, Callable[..., Any]]:
        """How an object of slots is copied although it refuses assignment."""
        names = [f.name for f in fields]

        def get_state(self: Any) -> list[Any]:
            return [getattr(self, name) for name in names]

        def set_state(self: Any, state: list[Any]) -> None:
            for name, value in zip(names, state, strict=True):
                object.__setattr__(self, name, value)

        return {"__getstate__": get_state, "__setstate__": set_state}
