#include "providers/ort/judge.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/arena.h"
#include "base/error_measure.h"
#include "providers/ort/numbers.h"
#include "providers/ort/read_graph.h"

namespace softneuro::ort {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int rounds = 7, runs_of_a_turn = 2;
constexpr auto pause = std::chrono::milliseconds(2);
constexpr double most_seconds = 1.5;

std::vector<const OrtValue*> host_values(std::span<const RunInput> inputs, std::vector<ValueOwner>& owners) {
  std::vector<const OrtValue*> values;
  for (const RunInput& input : inputs) {
    values.push_back(owners.emplace_back(tensor_over(input.data, input.type, input.dims)).get());
  }
  return values;
}

Elements elements_of(const OrtValue* value) {
  const TensorInfo info = tensor_info(value);
  return {info.type.known(), get<const void*>(fn::GetTensorData, value), Shape(info.dims).elements()};
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

HostTensor made_up(DType type, std::vector<int64_t> dims) {
  Numbers made{.real = true, .dims = std::move(dims), .integers = {}, .reals = {}};
  uint32_t state = 12345;
  for (size_t i = 0, count = elements(made.dims); i < count; ++i) {
    float sum = 0;  // of four uniform numbers: close enough to a normal one
    for (int k = 0; k < 4; ++k) {
      state = state * 1664525U + 1013904223U;
      sum += static_cast<float>(state >> 8) / static_cast<float>(1U << 24) - 0.5F;
    }
    const float value = sum * 1.7F;
    made.reals.push_back(is_real(type) ? value : type == DType::uint8 ? 128 + 50 * value : value > 0 ? 1 : 0);
  }
  return as_type(made, type);
}

std::vector<ValueOwner> exact_results(const OpGraph& ops, std::span<const RunInput> inputs, int threads) {
  std::vector<HostTensor> wide;
  std::vector<RunInput> given(inputs.begin(), inputs.end());
  for (RunInput& input : given) {
    // Borrowed where it is float32 already.
    const HostTensor as_it_is{input.type,
                              {input.dims.begin(), input.dims.end()},
                              std::shared_ptr<const void>(input.data, [](const void*) {})};
    input.data = wide.emplace_back(in_float32(as_it_is)).data.get();
    input.type = wide.back().type;
  }
  const OpGraph exact = in_float32(ops);
  std::vector<ValueOwner> owners;
  return HostRegion(exact, {.threads = threads, .step = true}).run(host_values(given, owners));
}

Verdict judged(Verdict verdict, double max_error) {
  char text[128];
  if (!(verdict.error <= max_error)) {
    std::snprintf(text, sizeof(text), "its error of %.1e is above max_error=%g", verdict.error, max_error);
    verdict.wins = false;
  } else {
    std::snprintf(text, sizeof(text), "%.3f ms against the host's %.3f ms", 1e3 * verdict.seconds,
                  1e3 * verdict.host_seconds);
    verdict.wins = verdict.seconds < verdict.host_seconds;
  }
  verdict.known = true;
  verdict.reason = text;
  return verdict;
}

Verdict compare(const Net& net, const Ready& ready, const HostRegion& host, const OpGraph& ops,
                std::span<const RunInput> inputs, std::span<const ValueOwner> truth, int threads, double max_error) {
  std::vector<ValueOwner> owners;
  const std::vector<const OrtValue*> values = host_values(inputs, owners);
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const int index : ready.inputs) in.push_back(inputs[static_cast<size_t>(index)].data);
  for (size_t i = 0; i < net.output_descs().size(); ++i) {
    memory.emplace_back(bytes(net.output_descs()[i], net.output_schemas()[i]));
    out.push_back(memory.back().data());
  }
  const ParallelFor pool = own_pool(threads);
  const auto expected = host.run(values);
  net.run(in, out, pool);
  Verdict verdict;
  for (size_t i = 0; i < ops.outputs.size(); ++i) {
    if (ready.outputs[i].output < 0) continue;
    const auto index = static_cast<size_t>(ready.outputs[i].output);
    const Shape& shape = ready.outputs[i].shape;
    if (tensor_info(expected[i].get()).dims != to_list(shape)) {
      throw Error("output " + std::to_string(i) + " has another shape than the host's");
    }
    const Elements result(net.output_schemas()[index].dtype, out[index], shape.elements());
    std::optional<Elements> exact;
    if (!truth.empty()) exact = elements_of(truth[i].get());
    const OutputError error = measure_error(result, elements_of(expected[i].get()), exact ? &*exact : nullptr);
    verdict.error = std::max(verdict.error, error.against(max_error));
  }
  std::vector<double> ours, theirs;
  const auto deadline = Clock::now() + std::chrono::duration<double>(most_seconds);
  // A pause in which the other side's threads go to sleep, a run that takes the caches back from it, then those that
  // count.
  const auto turn = [](std::vector<double>& samples, const auto& run) {
    std::this_thread::sleep_for(pause);
    run();
    for (int i = 0; i < runs_of_a_turn; ++i) {
      const auto start = Clock::now();
      run();
      samples.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  for (int round = 0; round < (verdict.error <= max_error ? rounds : 1); ++round) {
    turn(ours, [&] { net.run(in, out, pool); });
    turn(theirs, [&] { host.run(values); });
    if (round >= 2 && Clock::now() > deadline) break;
  }
  verdict.seconds = median(ours), verdict.host_seconds = median(theirs);
  return judged(verdict, max_error);
}

}  // namespace softneuro::ort
