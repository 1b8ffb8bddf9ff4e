// helios._native: the Python face of the CPU runtime.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>

#include "cpu.h"
#include "executor.h"
#include "gguf.h"
#include "latch.h"
#include "memory.h"
#include "pack.h"
#include "probe.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace helios {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Transfers = nb::ndarray<const int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

// "field: message" becomes HeliosError(message, field=field); what a user set is a configuration
// error, the rest is the device's.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const std::string text = error.what();
    const size_t colon = text.find(": ");
    const std::string field = colon == std::string::npos ? "" : text.substr(0, colon);
    const std::string message = colon == std::string::npos ? text : text.substr(colon + 2);
    const bool setting = field == "HELIOS_ISA" || field == "threads";
    nb::object kind = nb::module_::import_("helios.errors")
                          .attr(setting ? "ConfigurationError" : "DeviceError");
    nb::object raised = kind(message, "field"_a = field);
    PyErr_SetObject(kind.ptr(), raised.ptr());
  }
}

Params::Value value_of(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return int64_t{nb::cast<bool>(value)};
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  return nb::cast<std::vector<int64_t>>(value);
}

std::vector<StepSpec> specs_of(const nb::list& steps) {
  std::vector<StepSpec> specs;
  for (nb::handle item : steps) {
    const auto [kind, given] = nb::cast<std::tuple<std::string, nb::dict>>(item);
    Params params;
    for (const auto& [name, value] : given)
      params.set(nb::cast<std::string>(name), value_of(value));
    specs.emplace_back(kind, std::move(params));
  }
  return specs;
}

int64_t load(Executor& executor, const nb::list& steps, std::tuple<int64_t, int64_t, int64_t> c,
             int64_t workspace, int64_t workspace_bytes) {
  return executor.load(specs_of(steps), {std::get<0>(c), std::get<1>(c), std::get<2>(c)},
                       reinterpret_cast<uint8_t*>(workspace), workspace_bytes);
}

void run(Executor& executor, int64_t program, std::tuple<int64_t, int64_t, int64_t> extents,
         const Transfers& before, const Transfers& after) {
  const nb::gil_scoped_release released;
  executor.run(program, {std::get<0>(extents), std::get<1>(extents), std::get<2>(extents)},
               reinterpret_cast<const Transfer*>(before.data()), before.shape(0),
               reinterpret_cast<const Transfer*>(after.data()), after.shape(0));
}

std::map<std::string, std::pair<int64_t, int64_t>> profile(
    Executor& executor, int64_t program, std::tuple<int64_t, int64_t, int64_t> extents) {
  const nb::gil_scoped_release released;
  return executor.profile(program,
                          {std::get<0>(extents), std::get<1>(extents), std::get<2>(extents)});
}

nb::dict ceilings(Executor& executor) {
  Ceilings found;
  {
    const nb::gil_scoped_release released;
    const auto lock = executor.exclusive();
    found = measure_ceilings(executor.kernels(), executor.pool());
  }
  nb::dict told;
  told["integer_macs"] = found.integer_macs;
  told["float_macs"] = found.float_macs;
  told["read_bytes"] = found.read_bytes;
  return told;
}

void pack_matrix(Executor& executor, const std::string& storage, const std::string& layout,
                 int64_t rows, int64_t columns, const Bytes& source, int64_t destination) {
  const Layout to = layout_named(layout).layout;
  packed_bytes(layout_spec(to), rows, columns);
  const int64_t expected = stored_row_bytes(storage, columns) * rows;
  if (rows < 1 || static_cast<int64_t>(source.size()) != expected)
    throw Error("source: " + std::to_string(rows) + " rows of " + storage + " take " +
                std::to_string(expected) + " bytes, got " + std::to_string(source.size()));
  const nb::gil_scoped_release released;
  const auto lock = executor.exclusive();
  pack(storage, to, rows, columns, source.data(), reinterpret_cast<uint8_t*>(destination),
       executor.pool());
}

void unpack_rows(const std::string& layout, int64_t rows, int64_t columns, const Bytes& packed,
                 nb::ndarray<float, nb::shape<-1, -1>, nb::c_contig, nb::device::cpu> out) {
  const LayoutSpec& spec = layout_named(layout);
  if (static_cast<int64_t>(packed.size()) != packed_bytes(spec, rows, columns) ||
      static_cast<int64_t>(out.shape(0)) != rows || static_cast<int64_t>(out.shape(1)) != columns)
    throw Error("packed: sizes don't agree");
  const Matrix matrix{packed.data(), spec.layout, rows, columns};
  for (int64_t r = 0; r < rows; ++r) unpack_row(matrix, r, out.data() + r * columns);
}

nb::dict build_info() {
  nb::dict info;
  info["compiler"] = __VERSION__;
#ifdef __SANITIZE_ADDRESS__
  info["sanitizer"] = "address";
#elif defined(__SANITIZE_THREAD__)
  info["sanitizer"] = "thread";
#else
  info["sanitizer"] = "";
#endif
  info["isas"] = nb::cast(supported_isas());
  info["processors"] = usable_processors();
  return info;
}

nb::object view_of(nb::handle_t<Memory> self) {
  Memory& memory = nb::cast<Memory&>(self);
  return nb::cast(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(
                      memory.data(), {static_cast<size_t>(memory.nbytes())}, self),
                  nb::rv_policy::reference);
}

}  // namespace

NB_MODULE(_native, m) {
  // A process that ends may still hold a model; that is no leak.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  m.def("isa", [] { return best_kernels().name; });
  m.def("build_info", build_info);
  m.def("usable_processors", usable_processors);
  m.def("packed_bytes", [](const std::string& layout, int64_t rows, int64_t columns) {
    return packed_bytes(layout_named(layout), rows, columns);
  }, "layout"_a, "rows"_a, "columns"_a);
  m.def("natural_layout", [](const std::string& storage) {
    return std::string(layout_spec(natural_layout(storage)).name);
  }, "storage"_a);
  m.def("stored_row_bytes", [](const std::string& storage, int64_t columns) {
    return stored_row_bytes(storage, columns);
  }, "storage"_a, "columns"_a);
  m.def("layout_number", [](const std::string& layout) {
    return static_cast<int>(layout_named(layout).layout);
  }, "layout"_a);
  m.def("unpack", unpack_rows, "layout"_a, "rows"_a, "columns"_a, "packed"_a, "out"_a);

  nb::class_<Memory>(m, "Memory")
      .def(nb::init<int64_t>(), "nbytes"_a)
      .def_prop_ro("address",
                   [](const Memory& memory) { return reinterpret_cast<int64_t>(memory.data()); })
      .def_prop_ro("nbytes", &Memory::nbytes)
      .def("view", view_of);

  nb::class_<Latch>(m, "Latch")
      .def(nb::init<>())
      .def_prop_ro("address",
                   [](const Latch& latch) { return reinterpret_cast<int64_t>(&latch); })
      .def("hold", &Latch::hold)
      .def("release", &Latch::release);

  nb::class_<Executor>(m, "Executor")
      .def(nb::init<int>(), "threads"_a)
      .def_prop_ro("threads", &Executor::threads)
      .def_prop_ro("isa", &Executor::isa)
      .def_prop_ro("allocated_bytes", &Executor::allocated_bytes)
      .def("load", load, "steps"_a, "capacity"_a, "workspace"_a = 0, "workspace_bytes"_a = 0)
      .def("unload", &Executor::unload, "program"_a)
      .def("run", run, "program"_a, "extents"_a, "before"_a, "after"_a)
      .def("profile", profile, "program"_a, "extents"_a)
      .def("ceilings", ceilings)
      .def("pack", pack_matrix, "storage"_a, "layout"_a, "rows"_a, "columns"_a, "source"_a,
           "destination"_a);
}

}  // namespace helios
