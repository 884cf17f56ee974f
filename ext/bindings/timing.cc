// What the machine can do, and how long single routines take: for benchmarks.
#include <time.h>

#include <atomic>
#include <random>

#include "base/arena.h"
#include "base/error.h"
#include "ext/bindings/one_layer.h"
#include "layers/contract/registry.h"
#include "tune/measure/peak.h"

namespace softneuro::bindings {
namespace {

// One thread's time is its own, whatever else the machine does; that of several is the wall's.
double seconds_now(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Traffic parse_traffic(const std::string& name) {
  if (name == "read") return Traffic::read;
  if (name == "write") return Traffic::write;
  if (name == "stream") return Traffic::stream;
  throw Error("unknown traffic '" + name + "'", {}, "read, write and stream are known");
}

void evict_caches(int threads) {
  // A guest was seen to hold 110 MiB of a shared server cache of 480 MiB.
  static const AlignedBuffer buffer = [] {
    AlignedBuffer made(size_t{256} << 20);
    std::fill_n(made.f32(), made.size() / sizeof(float), 1.0F);
    return made;
  }();
  static std::atomic<float> sink;
  own_pool(threads)(threads, [&](int64_t task) {
    const Range part = split_range(static_cast<int64_t>(buffer.size() / 64), threads, task);
    float sum = 0;
    for (int64_t line = part.begin; line < part.end; ++line) sum += buffer.f32()[line * 16];
    sink = sum;
  });
}

class RoutineTimer {
 public:
  RoutineTimer(const std::string& type, const py::dict& attrs, const py::dict& weights,
               const std::vector<py::tuple>& shapes, const std::string& descriptor, const py::dict& post, int threads,
               const std::vector<py::object>& dtypes)
      : layer_(type, attrs, weights, shapes, post, dtypes), threads_(threads), parallel_for_(own_pool(threads)) {
    const Problem problem = layer_.problem(threads);
    const RoutineChoice choice = find_routine(descriptor);
    const Refusal refusal = accepts(*choice.routine, problem);
    if (!refusal.accepted()) throw Error("declines: " + refusal.reason(), descriptor);
    if (choice.routine->info().view) throw Error("is a view: there is nothing to time", descriptor);
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> values(-1, 1);
    for (size_t i = 0; i < problem.in.size(); ++i) {
      const Schema schema = choice.routine->input_schema(problem, static_cast<int>(i));
      AlignedBuffer& blob = add_blob(problem.in[i], schema);
      with_dtype(schema.dtype, [&](auto kind) {
        using T = decltype(kind);
        for (size_t j = 0; j < blob.size() / sizeof(T); ++j)
          static_cast<T*>(blob.data())[j] = element_from<T>(values(generator));
      });
      in_.push_back(dense_view(blob.data(), problem.in[i].shape, schema));
    }
    for (size_t k = 0; k < problem.outs.size(); ++k) {
      const Schema schema = choice.routine->output_schema(problem, static_cast<int>(k));
      outs_.push_back(dense_view(add_blob(problem.outs[k], schema).data(), problem.outs[k].shape, schema));
    }
    prepared_ = choice.routine->prepare(problem, choice.tuning, choice.routine->packed(problem, choice.tuning));
    workspace_ = AlignedBuffer(prepared_->workspace().bytes());
  }

  std::vector<double> run(int runs, bool evict) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) {
      if (evict) settle();
      const double start = seconds_now(threads_);
      prepared_->run({in_.data(), outs_.data(), {prepared_->workspace(), workspace_.data()}, parallel_for_});
      seconds.push_back(seconds_now(threads_) - start);
    }
    return seconds;
  }

  size_t workspace() const { return workspace_.size(); }

 private:
  AlignedBuffer& add_blob(const TensorDesc& desc, const Schema& schema) {
    return blobs_.emplace_back(bytes(desc, schema));
  }

  // Weights out of the caches, inputs in them: as a layer inside a large net finds them.
  void settle() {
    evict_caches(threads_);
    for (size_t i = 0; i < in_.size(); ++i) {
      auto* const data = static_cast<volatile unsigned char*>(blobs_[i].data());
      for (size_t j = 0; j < blobs_[i].size(); j += 64) data[j] = data[j];
    }
  }

  OneLayer layer_;
  int threads_;
  ParallelFor parallel_for_;
  std::vector<AlignedBuffer> blobs_;  // inputs, then outputs
  std::vector<TensorView> in_, outs_;
  std::unique_ptr<const Prepared> prepared_;
  AlignedBuffer workspace_;
};

}  // namespace

void bind_timing(py::module_& m) {
  using release = py::call_guard<py::gil_scoped_release>;
  m.def(
      "measure_fma",
      [](const std::string& isa, int threads, double seconds) {
        return measure_fma(parse_isa(isa), own_pool(threads), seconds);
      },
      py::arg("isa"), py::arg("threads"), py::arg("seconds"), release(),
      "Floating-point operations per second of multiply-adds in registers, all threads together.");
  m.def(
      "measure_bandwidth",
      [](const std::string& traffic, size_t bytes, int threads, double seconds) {
        return measure_bandwidth(parse_traffic(traffic), bytes, own_pool(threads), seconds);
      },
      py::arg("traffic"), py::arg("bytes"), py::arg("threads"), py::arg("seconds"), release(),
      "Bytes per second through a buffer of `bytes` per thread; traffic is read, write or stream (past the caches).");
  m.def("bytes_within", &bytes_within, py::arg("level"), py::arg("threads"),
        "Bytes per thread that cache level 1, 2 or 3, or memory (4) serves; 0 if there is no such level.");
  m.def("evict_caches", &evict_caches, py::arg("threads"), release(), "Reads through more memory than caches hold.");
  py::class_<RoutineTimer>(m, "RoutineTimer", "One routine prepared for one layer, with random inputs.")
      .def(py::init<const std::string&, const py::dict&, const py::dict&, const std::vector<py::tuple>&,
                    const std::string&, const py::dict&, int, const std::vector<py::object>&>(),
           py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"), py::arg("descriptor"),
           py::arg("post") = py::dict(), py::arg("threads") = 1, py::arg("dtypes") = std::vector<py::object>())
      .def("run", &RoutineTimer::run, py::arg("runs") = 1, py::arg("evict") = false, release(),
           "Seconds of each run: the thread's own time for one thread, the wall's for several. evict: weights out of "
           "the caches before each run, inputs in them.")
      .def_property_readonly("workspace", &RoutineTimer::workspace, "Bytes.");
}

}  // namespace softneuro::bindings
