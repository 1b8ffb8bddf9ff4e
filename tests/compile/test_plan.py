import json
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from toy_models import Shape, ToyModel

from helios.compile.canonical import digest, to_json
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.options import CompileOptions
from helios.compile.plan import Limits
from helios.errors import CompileError, ForeignPlanError, StalePlanError
from helios.runtime.reference.device import ReferenceRuntime


def test_the_id_is_the_hash_of_everything_else(compiled: CompiledModel) -> None:
    data = json.loads(compiled.plan.to_json())
    claimed = data.pop("id")
    assert claimed == compiled.plan.id == digest(to_json(data))


def test_equal_compilations_give_equal_plans(toy: ToyModel, compiled: CompiledModel) -> None:
    """On another composition of an equal device, too."""
    again = ReferenceRuntime().composition()
    other = again.compile(toy.prepared, toy.captured, compiled.plan.limits)
    assert other.plan.to_json() == compiled.plan.to_json()


def test_whatever_was_asked_for_is_in_the_id(
    toy: ToyModel, composition: RuntimeComposition, compiled: CompiledModel
) -> None:
    limits = compiled.plan.limits
    variants = [
        composition.compile(toy.prepared, toy.captured, limits, options).plan.id
        for options in (
            CompileOptions(retained=("logits",)),
            CompileOptions(retained=("*",)),
            CompileOptions(frames=1),
            CompileOptions(copied=True),
        )
    ]
    larger = replace(limits, pages=limits.pages + 1)
    variants.append(composition.compile(toy.prepared, toy.captured, larger).plan.id)
    assert len({*variants, compiled.plan.id}) == len(variants) + 1


def test_another_model_gives_another_plan(
    composition: RuntimeComposition, compiled: CompiledModel
) -> None:
    other = ToyModel(Shape(inner=128))
    plan = composition.compile(other.prepared, other.captured, compiled.plan.limits).plan
    assert plan.contract != compiled.plan.contract


def test_a_plan_is_frozen_and_sealed(compiled: CompiledModel) -> None:
    plan = compiled.plan
    with pytest.raises(FrozenInstanceError):
        plan.limits = replace(plan.limits, pages=1)  # type: ignore[misc]
    with pytest.raises(TypeError):
        plan.programs[0].lengths["B"] = 1  # type: ignore[index]
    with pytest.raises((ValueError, TypeError, ForeignPlanError)):
        replace(plan, retained=("x",))
    for sealed in (plan, compiled):
        with pytest.raises(ForeignPlanError):
            pickle.dumps(sealed)


def test_a_compiled_model_is_not_made_by_hand(compiled: CompiledModel) -> None:
    with pytest.raises(ForeignPlanError, match=r"RuntimeComposition\.compile"):
        CompiledModel(
            object(), compiled._composition, compiled.contract, compiled._compilation, LIMITS
        )


LIMITS = Limits(64, 1, 32, 2, 0)


def test_a_plan_is_bound_by_its_own_composition_alone(compiled: CompiledModel) -> None:
    compiled.require_composition(compiled._composition)
    with pytest.raises(ForeignPlanError, match="only by the composition"):
        compiled.require_composition(ReferenceRuntime().composition())


@pytest.mark.parametrize(
    "limits",
    [(0, 1, 1, 1, 0), (1, 0, 1, 1, 0), (1, 1, 0, 1, 0), (1, 1, 1, 0, 0), (1, 1, 1, 1, -1)],
    ids=str,
)
def test_limits_are_positive(limits: tuple[int, ...]) -> None:
    with pytest.raises(CompileError, match=r"positive|negative"):
        Limits(*limits)


def test_a_step_has_a_token_for_every_sequence() -> None:
    with pytest.raises(CompileError, match="token for every sequence"):
        Limits(64, 5, 4, 8, 0)


# ---- reading back -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(composition: RuntimeComposition) -> tuple[ToyModel, CompiledModel]:
    toy = ToyModel(Shape(layers=1), concurrency=2)
    options = CompileOptions(retained=("logits",))
    return toy, composition.compile(toy.prepared, toy.captured, LIMITS, options)


def test_a_written_plan_is_read_back(
    composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel]
) -> None:
    toy, compiled = small
    text = json.dumps(json.loads(compiled.plan.to_json()), indent=2)
    back = composition.read_back(text, toy.prepared, toy.captured)
    assert back.plan.id == compiled.plan.id


def _paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every leaf, but of long lists only the first, the second and the last."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _paths(value, (*path, key))
    elif isinstance(data, list) and data:
        for place in sorted({0, min(1, len(data) - 1), len(data) - 1}):
            yield from _paths(data[place], (*path, place))
    else:
        yield path


def _edited(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2
    if isinstance(value, str):
        return value + "x"
    return 1 if value is None else ["x"]


def test_a_plan_edited_in_any_field_is_refused(
    composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel]
) -> None:
    toy, compiled = small
    text = compiled.plan.to_json()
    paths = list(_paths(json.loads(text)))
    assert len(paths) > 120
    for path in paths:
        data = json.loads(text)
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = _edited(inner[path[-1]])
        with pytest.raises((StalePlanError, ForeignPlanError)):
            composition.read_back(json.dumps(data), toy.prepared, toy.captured)


@pytest.mark.parametrize("change", ["drop", "add"])
def test_fields_are_neither_dropped_nor_added(
    composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel], change: str
) -> None:
    toy, compiled = small
    names = [*json.loads(compiled.plan.to_json()), "weights.0.bound"]
    for name in names if change == "drop" else ["note"]:
        data = json.loads(compiled.plan.to_json())
        if name == "weights.0.bound":  # it is null: absence must not pass for it
            del data["weights"][0]["bound"]
        elif change == "drop":
            del data[name]
        else:
            data[name] = None
        with pytest.raises((StalePlanError, ForeignPlanError)):
            composition.read_back(json.dumps(data), toy.prepared, toy.captured)


def test_an_error_names_the_first_difference(
    composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel]
) -> None:
    toy, compiled = small
    data = json.loads(compiled.plan.to_json())
    data["buffers"][3]["nbytes"] += 64
    with pytest.raises(StalePlanError) as caught:
        composition.read_back(json.dumps(data), toy.prepared, toy.captured)
    assert caught.value.field == "plan.buffers[3].nbytes"


def test_the_plan_of_another_model_is_stale(
    toy: ToyModel, composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel]
) -> None:
    with pytest.raises(StalePlanError):
        composition.read_back(small[1].plan.to_json(), toy.prepared, toy.captured)


def test_the_plan_of_another_device_is_foreign(
    composition: RuntimeComposition, small: tuple[ToyModel, CompiledModel]
) -> None:
    toy, compiled = small
    data = json.loads(compiled.plan.to_json())
    data["device"]["isa"] = "avx512"
    with pytest.raises(ForeignPlanError, match="another device"):
        composition.read_back(json.dumps(data), toy.prepared, toy.captured)
    data = json.loads(compiled.plan.to_json())
    data["catalog"] = "0" * 64
    with pytest.raises(ForeignPlanError, match="another device"):
        composition.read_back(json.dumps(data), toy.prepared, toy.captured)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', "null", "[" * 100_000, "{}"], ids=lambda t: t[:6]
)
def test_what_is_no_plan_is_refused(
    toy: ToyModel, composition: RuntimeComposition, text: str
) -> None:
    with pytest.raises((StalePlanError, ForeignPlanError)):
        composition.read_back(text, toy.prepared, toy.captured)
