// The kernels themselves, written once and compiled once per instruction set: include after one of
// the simd_*.h headers and define HELIOS_KERNELS as the name of the table. Nothing here may call an
// inline function of the standard library: the linker would be free to pick this file's copy of it
// for code that must run on any processor.
#include "half.h"
#include "kernels.h"

namespace {

#include "kernels/math.inl"
#include "kernels/matmul.inl"
#include "kernels/rows.inl"
#include "kernels/attention.inl"
#include "kernels/vocabulary.inl"
#include "kernels/probes.inl"

}  // namespace

#define HELIOS_TEXT_(x) #x
#define HELIOS_TEXT(x) HELIOS_TEXT_(x)
#define HELIOS_JOIN_(a, b) a##b
#define HELIOS_JOIN(a, b) HELIOS_JOIN_(a, b)

namespace helios {

extern const Kernels HELIOS_JOIN(kernels_, HELIOS_KERNELS);
const Kernels HELIOS_JOIN(kernels_, HELIOS_KERNELS) = {
    .name = HELIOS_TEXT(HELIOS_KERNELS),
    .lanes = W,
    .pairs = kHasPairs,
    .quantise = quantise,
    .dot = dot,
    .dot_float = dot_float,
    .store_block = store_block,
    .rms_norm = rms_norm,
    .add = add_rows,
    .scale = scale_row,
    .softcap = softcap_row,
    .gate = gate,
    .rope = rope,
    .to_cache = to_cache,
    .attend = attend,
    .merge = merge,
    .normalise = normalise,
    .argmax = argmax,
    .largest = largest_of,
    .sum_exp = sum_exp,
    .probe_integer = probe_integer,
    .probe_float = probe_float,
    .probe_read = probe_read,
};

}  // namespace helios
