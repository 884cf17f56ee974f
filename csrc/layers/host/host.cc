#include "layers/host/host.h"

#include "base/arena.h"
#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/host/routines.inc"
#include "layers/contract/collect.inc"

namespace {

const HostOp& host_of(const Layer& layer) {
  if (layer.host == nullptr) throw Error("an op of the host comes without the host's function");
  return *layer.host;
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc>) {
  layer.attrs.expect_only({"op"});
  layer.attrs.text("op");
  expect_no_weights(layer);
  OutputDescs outs;
  for (const TensorDesc& desc : host_of(layer).outs) outs.push_back(desc);
  if (outs.empty()) throw Error("an op of the host has no outputs");
  return outs;
}

// The host's own result: there is no other truth of what it computes.
void reference(const Layer& layer, std::span<const RefTensor> in, std::span<const RefTensor> outs) {
  const HostOp& host = host_of(layer);
  std::vector<AlignedBuffer> memory;
  std::vector<TensorView> in_views, out_views;
  const auto add = [&](std::vector<TensorView>& views, const TensorDesc& desc) -> const TensorView& {
    const Schema schema = host_schema(desc);
    memory.emplace_back(bytes(desc, schema));
    return views.emplace_back(dense_view(memory.back().data(), desc.shape, schema));
  };
  for (size_t k = 0; k < in.size(); ++k) {
    const TensorView& view = add(in_views, host.ins.empty() ? TensorDesc{in[k].shape} : host.ins[k]);
    with_dtype(view.schema.dtype, [&](auto kind) {
      auto* data = view.as<decltype(kind)>();
      for (int64_t i = 0; i < in[k].shape.elements(); ++i)
        data[i] = element_from<decltype(kind)>(static_cast<float>(in[k].data[i]));
    });
  }
  for (const TensorDesc& desc : host.outs) add(out_views, desc);
  host.run(in_views, out_views);
  for (size_t k = 0; k < outs.size(); ++k) {
    with_dtype(out_views[k].schema.dtype, [&](auto kind) {
      const auto* data = out_views[k].as<decltype(kind)>();
      for (int64_t i = 0; i < outs[k].shape.elements(); ++i)
        outs[k].data[i] = static_cast<double>(element_value(data[i]));
    });
  }
}

}  // namespace

Schema host_schema(TensorDesc desc) {
  desc.quantization = nullptr;
  return natural_schema(desc);
}

Layer host_layer(std::string name, std::string op, HostOp host) {
  Layer layer;
  layer.name = std::move(name);
  layer.type = "host";
  layer.attrs.set("op", std::move(op));
  layer.host = std::make_shared<const HostOp>(std::move(host));
  return layer;
}

const LayerDef& host_layer() {
  static const LayerDef def{"host", infer, reference, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
