#include "providers/ort/judge.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/arena.h"
#include "base/error_measure.h"
#include "providers/ort/read_graph.h"

namespace softneuro::ort {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int rounds = 7, runs_of_a_turn = 2;
constexpr auto pause = std::chrono::milliseconds(2);
constexpr double most_seconds = 1.5;

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

std::vector<float> made_up_values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float& value : values) {
    float sum = 0;  // of four uniform numbers: close enough to a normal one
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525U + 1013904223U;
      sum += static_cast<float>(state >> 8) / static_cast<float>(1U << 24) - 0.5F;
    }
    value = sum * 1.7F;
  }
  return values;
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
                std::span<const RunInput> inputs, int threads, double max_error) {
  std::vector<ValueOwner> owners;
  std::vector<const OrtValue*> values;
  for (const RunInput& input : inputs) {
    owners.push_back(tensor_over(input.data, input.type, input.dims));
    values.push_back(owners.back().get());
  }
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const int index : ready.inputs) in.push_back(inputs[static_cast<size_t>(index)].data);
  for (const TensorDesc& desc : net.output_descs()) {
    memory.emplace_back(static_cast<size_t>(desc.shape.elements()) * sizeof(float));
    out.push_back(memory.back().f32());
  }
  const ParallelFor pool = tuning_pool(threads);
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
    const auto* reference = static_cast<const float*>(get<const void*>(fn::GetTensorData, expected[i].get()));
    const OutputError error =
        measure_error({DType::float32, out[index], shape.elements()}, {reference, shape.elements()});
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
