"""From a trusted core to a service that can answer: model, engine and frontend, tied together."""

from dataclasses import replace

from helios.compile.report import StartupReport
from helios.core.reader import Core
from helios.engine.engine import Engine
from helios.frontend.model import load_frontend
from helios.records import dataclass
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadedModel, LoadOptions, Progress, load_model
from helios.scheduler.policy import SchedulerPolicy
from helios.server.service import ServedModel, Service
from helios.server.settings import Limits

_DEFAULT_POLICY = SchedulerPolicy()


@dataclass(frozen=True, slots=True)
class Assembly:
    """A service, the engine behind it, and the model that runs in that."""

    service: Service
    engine: Engine
    loaded: LoadedModel


def assemble(
    core: Core,
    runtime: DeviceRuntime,
    options: LoadOptions,
    limits: Limits,
    progress: Progress | None = None,
    report: StartupReport | None = None,
    policy: SchedulerPolicy = _DEFAULT_POLICY,
) -> Assembly:
    """Load a core on a runtime and put an engine and a service in front of it.

    The frontend is made after the weights are in place; beside them it would gain nothing, since
    both hold the interpreter lock. The requests that may be active are those the plan has room for.
    """
    report = report or StartupReport()
    contract = core.contract
    syntax = contract.model.frontend
    template = syntax.template_resource
    words = core.resource(syntax.tokenizer_resource).decode()
    text = core.resource(template).decode() if template else None
    loaded = load_model(core, runtime, options, progress, report)
    with report.phase("frontend"):
        frontend = load_frontend(loaded.contract.frontend, words, text)
    with report.phase("engine"):
        engine = Engine(
            loaded.model,
            queue_capacity=limits.queue_capacity,
            monitor_factory=frontend.monitor,
            policy=policy,
        )
    model = ServedModel(
        id=loaded.contract.served_id,
        aliases=loaded.contract.aliases,
        context_tokens=loaded.plan.limits.context,
        numerics=loaded.plan.device.numerics,
        vocabulary=loaded.contract.vocabulary,
        defaults=loaded.contract.defaults,
        frontend=frontend,
    )
    limits = replace(limits, max_active=loaded.plan.limits.sequences)
    return Assembly(Service(model, engine, limits, report), engine, loaded)
