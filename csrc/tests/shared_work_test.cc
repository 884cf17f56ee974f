// Work that changes hands: every piece is done once whoever does it, and what comes of it is the same, bit for bit.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "base/arena.h"
#include "layers/shared/split.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"

namespace softneuro {
namespace {

constexpr int threads = 3;
constexpr size_t most_tunings = 2;  // of a routine: sanitizers and emulators take their time

// Hosts that run one task after the other: the first one takes all that changes hands.
struct InOrder {
  std::vector<int64_t> order;

  static void run(void* self, int64_t tasks, ParallelFor::Task task, void* arg) {
    const InOrder& host = *static_cast<const InOrder*>(self);
    if (static_cast<int64_t>(host.order.size()) != tasks) {
      for (int64_t i = 0; i < tasks; ++i) task(arg, i);
    } else {
      for (const int64_t i : host.order) task(arg, i);
    }
  }
  ParallelFor parallel_for() { return {&run, this, threads}; }
};

void once_each(const ParallelFor& host, int64_t images, int64_t panels, int64_t rows, SplitBy by, int64_t unit) {
  const WorkSplit split(images, panels, rows, threads, by, unit);
  std::vector<std::atomic<int>> seen(static_cast<size_t>(images * panels * rows));
  SharedWork work(split);
  host(split.tasks, [&](int64_t task) {
    work.for_task(task, [&](int64_t image, Range p, Range r) {
      for (int64_t panel = p.begin; panel < p.end; ++panel)
        for (int64_t row = r.begin; row < r.end; ++row)
          ++seen[static_cast<size_t>((image * panels + panel) * rows + row)];
    });
  });
  for (const auto& count : seen) test::expect(count == 1, "each panel of each row is done once");
}

void all_once_each(const ParallelFor& host) {
  for (const SplitBy by : {SplitBy::rows, SplitBy::panels}) {
    for (const int64_t images : {0, 1, 2, 3, 13}) {
      for (const auto& [panels, rows] : {std::pair{1, 112}, {112, 1}, {5, 49}, {37, 50}, {2, 2}}) {
        for (const int64_t unit : {0, 1, 4, 28}) once_each(host, images, panels, rows, by, unit);
      }
    }
  }
}

std::vector<float> some(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1013) / 500 - 0.9f;
  return values;
}
Constant weight(const Shape& shape) { return constant_from(shape, some(shape.elements())); }

Layer conv(int64_t k, int64_t c, int64_t kernel, int64_t stride, int64_t groups) {
  const int64_t pad = kernel / 2;
  Layer made = layer("conv2d", {{"stride", Axes{stride, stride}},
                                {"padding", Axes{pad, pad, pad, pad}},
                                {"dilation", Axes{1, 1}},
                                {"groups", groups}});
  made.set_weight("weight", weight({k, c / groups, kernel, kernel}));
  made.set_weight("bias", weight({k}));
  return made;
}

Layer block(int64_t c, int64_t expanded, int64_t k, int64_t first_kernel) {
  Layer made = layer("depthwise_block", {{"stride", Axes{1, 1}}, {"padding", Axes{1, 1, 1, 1}}});
  if (first_kernel > 1) {
    made.attrs.set("expand_stride", Axes{2, 2});
    made.attrs.set("expand_padding", Axes{1, 1, 1, 1});
  }
  made.set_weight("expand_weight", weight({expanded, c, first_kernel, first_kernel}));
  made.set_weight("depthwise_weight", weight({expanded, 1, 3, 3}));
  if (k > 0) made.set_weight("project_weight", weight({k, expanded, 1, 1}));
  return made;
}

Layer conv_pool() {
  Layer made = layer("conv_pool", {{"stride", Axes{1, 1}},
                                   {"padding", Axes{1, 1, 1, 1}},
                                   {"pool_function", std::string("max")},
                                   {"pool_kernel", Axes{3, 3}},
                                   {"pool_stride", Axes{2, 2}}});
  made.set_weight("conv_weight", weight({32, 3, 3, 3}));
  return made;
}

Layer conv2d_pair() {
  Layer made = layer("conv2d_pair", {{"first_padding", Axes{1, 1, 1, 1}}, {"second_padding", Axes{1, 1, 1, 1}}});
  for (const auto& [role, k, c] : {std::tuple{"first_weight", 40, 8}, {"second_weight", 32, 40}}) {
    std::vector<float> values = some(k * c * 9);
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 5 == 0 ? values[i] : 0;
    made.set_weight(role, constant_from({k, c, 3, 3}, std::move(values)));
  }
  return made;
}

struct Shared {
  Case item;
  std::string only;  // routines with this in their descriptor
};

// Large enough for pieces: a task of less than some microseconds is none.
std::vector<Shared> shared_cases() {
  std::vector<Shared> list{{{conv(32, 3, 3, 2, 1), {{1, 3, 72, 60}}}, ""},
                           {{conv(32, 16, 3, 1, 1), {{1, 16, 19, 22}}}, ""},
                           {{conv(72, 40, 1, 1, 1), {{1, 40, 21, 19}}}, ""},
                           {{conv(400, 80, 1, 1, 1), {{1, 80, 7, 7}}}, ""},
                           {{conv(200, 200, 3, 1, 200), {{1, 200, 20, 20}}}, ""},
                           {{conv(40, 80, 1, 1, 1), {{5, 80, 7, 8}}}, ""},
                           {{block(16, 800, 0, 1), {{1, 16, 9, 9}}}, ""},
                           {{block(24, 48, 24, 1), {{1, 24, 26, 28}}}, ""},
                           {{block(3, 32, 16, 3), {{1, 3, 64, 60}}}, ""},
                           {{conv_pool(), {{1, 3, 40, 44}}}, ""},
                           {{conv2d_pair(), {{1, 8, 60, 33}}}, ""}};
  Layer linear = layer("linear", {});
  linear.set_weight("weight", weight({803, 320}));
  for (const int64_t rows : {1, 3, 20}) list.push_back({{linear, {{rows, 320}}}, ""});
#ifdef __x86_64__  // elsewhere an emulator does it
  list.push_back({{conv(16, 16, 3, 1, 1), {{1, 16, 80, 80}}}, "/winograd_avx"});
#endif
  return list;
}

AlignedBuffer run(const Problem& problem, const Routine& routine, const Prepared& prepared, const ParallelFor& host) {
  std::vector<AlignedBuffer> memory;
  std::vector<TensorView> in;
  const auto blob = [&](const Shape& shape, const Schema& schema) {
    const int64_t count = physical_elements(shape, schema.layout);
    memory.emplace_back(static_cast<size_t>(count) * sizeof(float));
    const std::vector<float> values = some(count);
    std::copy(values.begin(), values.end(), memory.back().f32());
    return dense_view(memory.back().data(), shape, schema);
  };
  for (size_t i = 0; i < problem.in.size(); ++i) {
    in.push_back(blob(problem.in[i].shape, routine.input_schema(problem, static_cast<int>(i))));
  }
  const TensorView out = blob(problem.out().shape, routine.info().out);
  const WorkspaceSize size = prepared.workspace();
  const AlignedBuffer workspace(size.bytes());
  prepared.run({in.data(), &out, {size, workspace.data()}, host});
  return std::move(memory.back());
}

void same_bits(const Shared& shared, const std::vector<ParallelFor>& hosts) {
  Problem problem = problem_of(shared.item);
  problem.threads = threads;
  for (const Routine* routine : accepting_routines(problem)) {
    if (routine->info().view) continue;
    std::vector<Tuning> tunings = routine->tunings(problem);
    if (shared.only.empty()) tunings.resize(std::min(tunings.size(), most_tunings));
    for (const Tuning& tuning : tunings) {
      if (routine->descriptor(tuning).find(shared.only) == std::string::npos) continue;
      const auto prepared = routine->prepare(problem, tuning, routine->packed(problem, tuning));
      const AlignedBuffer wanted = run(problem, *routine, *prepared, hosts[0]);
      for (size_t i = 1; i < hosts.size(); ++i) {
        const AlignedBuffer got = run(problem, *routine, *prepared, hosts[i]);
        if (std::memcmp(got.data(), wanted.data(), wanted.size()) == 0) continue;
        std::printf("%s: other bits with host %zu\n", routine->descriptor(tuning).c_str(), i);
        ++test::failures();
      }
    }
  }
}

}  // namespace
}  // namespace softneuro

SN_TEST(shared_work_test) {
  using namespace softneuro;
  InOrder forward{{0, 1, 2}}, backward{{2, 1, 0}}, inner{{1, 0, 2}};
  ThreadPool pool(threads);
  std::vector<ParallelFor> hosts{forward.parallel_for(), backward.parallel_for()};
#ifdef __x86_64__
  hosts.insert(hosts.end(), {inner.parallel_for(), pool.parallel_for()});
#endif
  for (const ParallelFor& host : hosts) all_once_each(host);
  for (const Shared& shared : shared_cases()) same_bits(shared, hosts);
}
