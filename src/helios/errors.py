"""One family of errors. Each names the field, the value and the remedy."""


class HeliosWarning(UserWarning):
    """Something a user should know that does not stop the work."""


class HeliosError(Exception):
    """Base of all errors that Helios raises on purpose.

    `field` says where (a dotted path, a parameter, a file), `value` what was found there,
    `remedy` what to do about it. Subclasses add no behaviour: their type says which part
    refused, so that a caller can map it to an exit code or an HTTP status in one place.
    """

    def __init__(
        self, message: str, *, field: str = "", value: object = None, remedy: str = ""
    ) -> None:
        self.message = message
        self.field = field
        self.value = value
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.field}: {self.message}" if self.field else self.message
        if self.value is not None:
            text += f" (got {_shorten(repr(self.value))})"
        if self.remedy:
            text += f"; {self.remedy}"
        return text


def _shorten(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class ContractError(HeliosError):
    """A contract or manifest that a server must refuse."""


class ProgramError(HeliosError):
    """A captured program that is not well formed."""


class CoreError(HeliosError):
    """A core file that can't be read as what it claims to be."""


class TrustError(HeliosError):
    """A signature or acceptance that does not hold."""


class SignatureError(TrustError):
    """Bytes that no trusted key of their publisher has signed."""


class AcceptanceError(TrustError):
    """An acceptance that does not equal the signed publisher namespace."""


class SourceError(HeliosError):
    """A checkpoint that can't be prepared."""


class CompileError(HeliosError):
    """A program that can't be compiled for a device."""


class UnsupportedOperationError(CompileError):
    """No provider of the device implements an operation."""


class UnsupportedLayoutError(CompileError):
    """No provider accepts a weight's storage and no materializer can change it."""


class FitError(CompileError):
    """The plan does not fit the memory budget."""


class StalePlanError(CompileError):
    """A plan that no longer describes what it was made from."""


class ForeignPlanError(CompileError):
    """A plan or catalog of another composition or device."""


class AccuracyError(CompileError):
    """An approximation that is worse than its user allowed."""


class DeviceError(HeliosError):
    """The device failed, or a completion record lied."""


class AdmissionError(HeliosError):
    """A request the scheduler can never run; the message gives the numbers."""


class RequestError(HeliosError):
    """A request that is wrong in itself; `field` names the parameter."""


class ConfigurationError(HeliosError):
    """An option that can't be honoured."""
