"""The operations a captured program may perform."""

from enum import IntEnum

from helios.schema import program_pb2 as pb


class Operation(IntEnum):
    """What a program does to a request, numbered as on the wire."""

    INITIALIZE = pb.OPERATION_INITIALIZE
    RESTORE = pb.OPERATION_RESTORE
    PREFILL = pb.OPERATION_PREFILL
    SCORED_PREFILL = pb.OPERATION_SCORED_PREFILL
    RESUME = pb.OPERATION_RESUME
    DECODE = pb.OPERATION_DECODE
    MIXED = pb.OPERATION_MIXED
    SPECULATIVE = pb.OPERATION_SPECULATIVE
    TUNING = pb.OPERATION_TUNING
