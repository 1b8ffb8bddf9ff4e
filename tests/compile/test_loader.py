import json
from pathlib import Path

import pytest
from toy_models import Shape, ToyModel

from helios.compile.report import StartupReport
from helios.errors import CoreError, FitError, HeliosError
from helios.runtime import loader
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.runtime.single import SingleRequest

MIB = 1 << 20


@pytest.fixture(scope="module")
def model() -> ToyModel:
    return ToyModel(Shape(context=2048), concurrency=4)


@pytest.fixture(scope="module")
def minimum(model: ToyModel) -> int:
    with pytest.raises(FitError) as caught:
        load_model(model, ReferenceRuntime(), LoadOptions(memory=1))
    return int(caught.value.remedy.split("--memory ")[1].split()[0])


def test_exactly_the_minimum_serves_a_full_context(model: ToyModel, minimum: int) -> None:
    loaded = load_model(model, ReferenceRuntime(), LoadOptions(memory=minimum))
    with loaded.model:
        context = loaded.plan.limits.context
        request = SingleRequest(loaded.model)
        prompt = [token % 90 for token in range(context - 2)]
        steps = list(request.generate(prompt, 3))
        assert steps[-1].consumed == context
        assert loaded.plan.total_nbytes == minimum


def test_a_mebibyte_less_fails_before_anything_is_allocated(
    model: ToyModel, minimum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(_plan: object) -> None:
        raise AssertionError("storage was allocated")

    monkeypatch.setattr(loader, "Storage", allocate)
    monkeypatch.setattr(ToyModel, "weight", allocate)
    report = StartupReport()
    with pytest.raises(FitError) as caught:
        load_model(model, ReferenceRuntime(), LoadOptions(memory=minimum - MIB), report=report)
    assert str(minimum) in caught.value.remedy
    assert report.failure is not None
    assert (report.failure.phase, report.failure.kind) == ("plan", "FitError")
    assert report.committed_nbytes is None


def test_explicit_limits_reach_the_plan(model: ToyModel) -> None:
    options = LoadOptions(
        memory=1 << 28, context=300, concurrency=2, batch_tokens=16, pages=30, snapshots=3
    )
    loaded = load_model(model, ReferenceRuntime(), options)
    with loaded.model:
        limits = loaded.plan.limits
        geometry = loaded.model.geometry
    assert (limits.context, limits.sequences, limits.batch_tokens) == (300, 2, 16)
    assert (limits.pages, limits.snapshots) == (30, 3)
    assert (geometry.context_tokens, geometry.slots, geometry.pages) == (300, 2, 30)


def test_the_report_tells_how_it_went(model: ToyModel, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    report = StartupReport()
    loaded = load_model(
        model,
        ReferenceRuntime(),
        LoadOptions(memory=1 << 28),
        lambda phase, done, total: seen.append((phase, done, total)),
        report,
    )
    with loaded.model:
        assert loaded.report is report
        report.write(tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert [p["name"] for p in told["phases"]] == [
        "contract",
        "plan",
        "allocate",
        "weights",
        "tune",
        "start",
    ]
    assert told["failure"] is None
    memory = told["memory"]
    assert 0 < memory["committed"] <= memory["planned"] <= memory["budget"] == 1 << 28
    assert memory["measured"] > 0
    assert told["plan"]["id"] == loaded.plan.id
    assert sum(told["plan"]["sections"].values()) == told["plan"]["total"] == memory["planned"]
    assert told["fit"]["selected"]["context"] == loaded.plan.limits.context
    assert seen[-1][1] == seen[-1][2]
    assert {phase for phase, _, _ in seen} == {"weights"}


def test_a_failed_start_up_names_phase_error_and_remedy(tmp_path: Path) -> None:
    class Damaged(ToyModel):
        def weight(self, name: str) -> object:
            raise CoreError("is damaged", field=name, value=7, remedy="copy it again")

    report = StartupReport()
    with pytest.raises(CoreError):
        load_model(Damaged(), ReferenceRuntime(), LoadOptions(memory=1 << 28), report=report)
    report.write(tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["failure"] == {
        "phase": "weights",
        "kind": "CoreError",
        "message": "is damaged",
        "field": "embedding",
        "value": "7",
        "remedy": "copy it again",
    }
    assert told["plan"]["total"] > 0
    assert [p["name"] for p in told["phases"]][-1] == "weights"


def test_errors_that_are_not_ours_are_reported_too() -> None:
    report = StartupReport()
    with pytest.raises(ZeroDivisionError), report.phase("outer"), report.phase("inner"):
        _ = 1 // 0
    assert report.failure is not None
    assert (report.failure.phase, report.failure.kind) == ("inner", "ZeroDivisionError")


def test_another_composition_loads_nothing(model: ToyModel) -> None:
    report = StartupReport()
    compiled = loader.compile_core(model, ReferenceRuntime(), LoadOptions(memory=1 << 28), report)
    with pytest.raises(HeliosError, match="only by the composition"):
        ReferenceRuntime().load(compiled, loader.Storage(compiled.plan), model)
