#include "providers/ort/run/region_call.h"

#include <algorithm>
#include <optional>

#include "base/error_measure.h"
#include "providers/ort/graph/read_graph.h"
#include "providers/ort/lower/numbers.h"

namespace softneuro::ort {
namespace {

// As the numbers that they mean: bytes with a scale are reals.
Elements elements_of(DType type, const void* data, int64_t count, const HostValue& output) {
  if (!output.grid) return {type, data, count};
  return {output.type.known(), data, count, static_cast<double>(output.grid->scales[0]),
          static_cast<double>(output.grid->zero_points[0])};
}

Elements elements_of(const OrtValue* value, const HostValue& output) {
  const TensorInfo info = tensor_info(value);
  return elements_of(info.type.known(), get<const void*>(fn::GetTensorData, value), Shape(info.dims).elements(),
                     output);
}

std::vector<const OrtValue*> host_values(std::span<const RunInput> inputs, std::vector<ValueOwner>& owners) {
  std::vector<const OrtValue*> values;
  for (const RunInput& input : inputs) {
    values.push_back(owners.emplace_back(tensor_over(input.data, input.type, input.dims)).get());
  }
  return values;
}

// What a region's ops compute in float32, by the host, one after the other if they quantize. All memory but the
// results' is free again.
std::vector<ValueOwner> exact_results(const HostGraph& ops, std::span<const RunInput> inputs, int threads) {
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
  HostGraph exact = in_float32(ops);
  for (HostNode& node : exact.nodes) node.attributes.erase("accuracy_level");
  std::vector<ValueOwner> owners;
  return HostRegion(exact, {.threads = threads, .plain = is_quantized(ops), .step = true})
      .run(host_values(given, owners));
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
    const float byte = 50 * value + (type == DType::uint8 ? 128.0F : 0.0F);
    const bool is_byte = type == DType::uint8 || type == DType::int8;
    made.reals.push_back(is_real(type) ? value : is_byte ? byte : value > 0 ? 1 : 0);
  }
  return as_type(made, type);
}

OrtRegionCall::OrtRegionCall(Region& region, std::span<const RunInput> inputs, bool has_values)
    : region_(region), inputs_(inputs), has_values_(has_values) {
  if (has_values_) values_ = host_values(inputs_, owners_);
}

OrtRegionCall::OrtRegionCall(Region& region, const Signature& signature, std::span<const RunInput> inputs,
                             SessionRun& run)
    : region_(region),
      inputs_(inputs),
      has_values_(true),
      signature_(&signature),
      run_(&run),
      values_(run.inputs().begin(), run.inputs().end()) {}

void OrtRegionCall::run_host() {
  const HostRegion& host = region_.host();
  if (run_ != nullptr && outputs_.empty() && hosts_.empty()) {
    if (const auto dims = region_.output_shapes().find(*signature_)) {
      for (size_t i = 0; i < dims->size(); ++i) outputs_.push_back(run_->output(i, (*dims)[i]));
    }
  }
  const auto run = [&] {
    if (in_place()) {
      host.run(values_, outputs_);
    } else {
      hosts_ = host.run(values_);
    }
  };
  const int64_t start = steady_now_ns();
  if (run_ != nullptr && region_.host_takes_long()) {
    run_->alone(run);
  } else {
    run();
  }
  region_.note_host(steady_now_ns() - start);
}

void OrtRegionCall::run_net(const Ready& ready) {
  if (net_ != ready.net) {
    net_ = ready.net;
    door_ = ready.door;
    memory_.clear();
    for (size_t i = 0; i < net_->output_descs().size(); ++i) {
      memory_.emplace_back(bytes(net_->output_descs()[i], net_->output_schemas()[i]));
    }
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const int index : Region::places(ready).inputs) in.push_back(inputs_[static_cast<size_t>(index)].data);
  for (const AlignedBuffer& memory : memory_) out.push_back(memory.data());
  ready.run(in, out, run_ != nullptr ? run_->pool() : own_pool(net_->threads()));
}

double OrtRegionCall::error(double max_error) {
  const bool halves = has_halves(region_.ops());
  const std::vector<bool>& in_steps = region_.outputs_in_steps();
  const Places& places = *static_cast<const Places*>(door_.get());
  double worst = 0;
  for (size_t i = 0; i < places.outputs.size(); ++i) {
    if (places.outputs[i].output < 0) continue;
    const auto index = static_cast<size_t>(places.outputs[i].output);
    const Shape& shape = places.outputs[i].shape;
    if (tensor_info(host_value(i)).dims != to_list(shape)) {
      throw Error("output " + std::to_string(i) + " has another shape than the host's");
    }
    const HostValue& output = region_.ops().value(region_.ops().outputs[i]);
    const Elements result =
        elements_of(net_->output_schemas()[index].dtype, memory_[index].data(), shape.elements(), output);
    std::optional<Elements> exact;
    const auto truth = [&]() -> const Elements* {
      if (!halves && !in_steps[i]) return nullptr;
      if (truths_.empty()) truths_ = exact_results(region_.ops(), inputs_, region_.threads());
      return &exact.emplace(elements_of(truths_[i].get(), output));
    };
    worst = std::max(worst, judged_error(result, elements_of(host_value(i), output), in_steps[i], max_error, truth));
  }
  return worst;
}

void OrtRegionCall::progress(int done, int total) {
  if (region_.settings().report) region_.settings().report->progress(done, total);
}

std::vector<OrtRegionCall::Result> OrtRegionCall::net_results() const {
  std::vector<Result> results;
  for (const GivenOutput& given : static_cast<const Places*>(door_.get())->outputs) {
    if (given.output < 0) {
      results.push_back({given.known.dims, given.known.type, given.known.data.get()});
      continue;
    }
    const auto index = static_cast<size_t>(given.output);
    results.push_back({to_list(given.shape), net_->output_schemas()[index].dtype, memory_[index].data()});
  }
  return results;
}

std::vector<OrtRegionCall::Result> OrtRegionCall::host_results() const {
  std::vector<Result> results;
  for (const ValueOwner& value : hosts_) {
    const TensorInfo info = tensor_info(value.get());
    results.push_back({info.dims, info.type.known(), get<const void*>(fn::GetTensorData, value.get())});
  }
  return results;
}

}  // namespace softneuro::ort
