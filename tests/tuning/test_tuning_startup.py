"""Start-up order: producers run once, before any graph that depends on them can be used."""

from collections.abc import Sequence

import pytest
from toy_models import ToyModel

from helios.compile.report import StartupReport
from helios.errors import ContractError, DeviceError
from helios.ignition import outline
from helios.program.ir import Program
from helios.runtime import loader, tuning
from helios.runtime.cpu.device import CpuRunner, CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadedModel, LoadOptions, load_model
from helios.runtime.model import Model
from helios.runtime.reference.device import ReferenceRunner, ReferenceRuntime
from helios.runtime.single import SingleRequest


@pytest.fixture(scope="module")
def model() -> ToyModel:
    return ToyModel(concurrency=2)


def load(
    model: ToyModel,
    runtime: DeviceRuntime,
    seconds: float = 0.1,
    report: StartupReport | None = None,
) -> LoadedModel:
    options = LoadOptions(memory=1 << 28, tuning_seconds=seconds)
    return load_model(model, runtime, options, report=report)


def test_the_reference_writes_neutral_choices(model: ToyModel) -> None:
    loaded = load(model, ReferenceRuntime())
    with loaded.model:
        assert loaded.report.tuning.trials == 0
        choices = loaded.report.tuning.choices
        assert len(choices) == 5
        assert all(values == (0,) * 5 for values in choices.values())


@pytest.mark.parametrize("numerics", ["a8", "mixed", "a16", "f32"])
def test_the_cpu_measures_and_serves(model: ToyModel, numerics: str) -> None:
    loaded = load(model, CpuRuntime(2, numerics), seconds=5.0)
    with loaded.model:
        told = loaded.report.tuning
        assert told.trials > 0
        for name, values in told.choices.items():
            assert list(loaded.storage.persistent[name]) == list(values)
            assert min(values) >= 0
        steps = list(SingleRequest(loaded.model).generate([1, 2, 3], 3))
        assert steps[-1].consumed == 5


def test_without_time_every_choice_is_neutral(model: ToyModel) -> None:
    loaded = load(model, CpuRuntime(2), seconds=0.0)
    with loaded.model:
        assert loaded.report.tuning.trials == 0
        assert {v for values in loaded.report.tuning.choices.values() for v in values} == {0}


@pytest.mark.parametrize(
    ("runtime", "runner"), [(CpuRuntime(1), CpuRunner), (ReferenceRuntime(), ReferenceRunner)]
)
def test_each_producer_runs_once_before_the_model_exists(
    model: ToyModel,
    runtime: DeviceRuntime,
    runner: type[CpuRunner] | type[ReferenceRunner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    tune = runner.tune

    def watched(self: object, program: str, budget: float) -> int:
        order.append(f"tune {program}")
        assert 0 < budget <= 0.1
        return tune(self, program, budget)  # type: ignore[arg-type]

    def exposed(*args: object) -> Model:
        order.append("exposed")
        return Model(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "tune", watched)
    monkeypatch.setattr(loader, "Model", exposed)
    with load(model, runtime).model:
        assert order == ["tune tune", "exposed"]


def test_the_report_shows_the_phase(model: ToyModel) -> None:
    report = StartupReport()
    with load(model, ReferenceRuntime(), report=report).model:
        names = [phase.name for phase in report.phases]
        assert names.index("weights") < names.index("tune") < names.index("start")
        assert set(report.to_dict()["tuning"]) == {"trials", "choices"}


def test_a_graph_is_not_exposed_before_its_buffers_are_filled(model: ToyModel) -> None:
    loaded = load(model, ReferenceRuntime())
    loaded.model.close()
    filled = dict(loaded.report.tuning.choices)
    missing, _ = filled.popitem()
    with pytest.raises(DeviceError, match="no tuning program has filled") as caught:
        Model(loaded.compiled, loaded.storage, loaded.runner, filled)
    assert missing in caught.value.field
    assert caught.value.value == "tune"


def test_a_producer_that_leaves_a_choice_open_stops_start_up(
    model: ToyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceRunner, "tune", lambda *_: 0)
    report = StartupReport()
    with pytest.raises(DeviceError, match="left choices open"):
        load(model, ReferenceRuntime(), report=report)
    assert report.failure is not None
    assert report.failure.phase == "tune"


def test_a_missing_producer_stops_start_up_before_anything_is_allocated() -> None:
    class Incomplete(ToyModel):
        def programs(self) -> Sequence[Program]:
            return [p for p in super().programs() if p.name != "tune"]

    report = StartupReport()
    with pytest.raises(ContractError, match="there is no such program"):
        load(Incomplete(), ReferenceRuntime(), report=report)
    assert report.failure is not None
    assert (report.failure.phase, report.failure.field) == ("contract", "programs.tune")


def test_a_core_without_tuning_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "with_tuning", lambda graphs, _tensors: (graphs, ()))
    plain = ToyModel(concurrency=2)
    assert not plain.manifest.tuning
    for runtime in (CpuRuntime(2), ReferenceRuntime()):
        with load(plain, runtime).model as served:
            assert len(list(SingleRequest(served).generate([1, 2, 3], 3))) == 3


def test_producers_that_no_graph_needs_are_left_alone(
    model: ToyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(model, ReferenceRuntime())
    loaded.model.close()

    class Contract:
        graphs = ()
        tuning = loaded.contract.tuning

    class Compiled:
        contract = Contract

    told = tuning.fill_tuned(Compiled, loaded.storage, loaded.runner, 1.0)  # type: ignore[arg-type]
    assert (told.trials, dict(told.choices)) == (0, {})
