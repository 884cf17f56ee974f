// A few rows x weights as the model has them, in its own type: no packing, which would be a second copy of what is
// often most of a model, and where weights come from memory its bandwidth is the limit.
#include "kernels/dot_rows/dot_rows.h"
#include "layers/contract/params.h"
#include "layers/linear/rows.h"
#include "layers/quantized/quantization.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

SN_PARAMS(DotParams, streams, fetch);

class PreparedDot final : public PreparedSplit {
 public:
  PreparedDot(const Problem& problem, DotRowsKernel run, DType type, const DotParams& params)
      : PreparedSplit(problem), run_(run) {
    const LinearParams p = linear_params(problem);
    const ConstantData& weight = *problem.layer->weight("weight");
    args_.type = type;
    if (type == DType::float32) {
      floats_ = HeldRows(weight);
      args_.weights = floats_.values();
      args_.factors = floats_.factors();
    } else {
      memory_ = weight.memory();
      args_.weights = memory_.get();
    }
    if (type == DType::int8) {
      scales_ = output_scales(weight);
      args_.factors = scales_.data();
    }
    if (const Constant* bias = problem.layer->find_weight("bias")) {
      const auto values = (*bias)->values();
      bias_.assign(values.get(), values.get() + p.k);
    }
    args_.k = static_cast<int>(p.c);
    args_.streams = params.streams;
    args_.fetch = params.fetch != 0;
    args_.epilogue.bias = bias_.empty() ? nullptr : bias_.data();
    args_.epilogue.activation = problem.layer->post.activation;
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto flop = 2.0 * static_cast<double>(p.rows * p.k * p.c);
    const auto bytes = static_cast<double>(dtype_bytes(type, p.k * p.c));
    constexpr int64_t unit = 8;  // most streams
    split_ = WorkSplit(1, p.k, 1, worth_threads(flop, bytes, problem.threads), SplitBy::panels, unit);
  }

  void run(const RunArgs& args) const override { run_dots(args, split_, residual_, rows_, args_, run_); }

 private:
  DotRowsKernel run_;
  HeldRows floats_;
  ConstantData::Memory memory_;  // of other types than float32
  std::vector<float> bias_, scales_;
  DotRows args_{};
  int64_t rows_ = 0;
};

class DotLinear final : public Routine {
 public:
  DotLinear(Isa isa, DType weights)
      : Routine({.layer_type = "linear",
                 .algorithm = weights == DType::float32 ? "dot" : "dot_" + std::string(dtype_name(weights)),
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw}),
        weights_(weights) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const ConstantData& weight = *problem.layer->weight("weight");
    if (weights_ == DType::int8) {
      if (const Refusal refusal = check_signed_weight(weight); !refusal.accepted()) return refusal;
    } else {
      if (weight.dtype() != weights_) return "weights are not " + std::string(dtype_name(weights_));
      if (weights_ != DType::float32 && !weight.at_hand()) return "weights are computed";
    }
    const int most = weights_ == DType::int8 ? DotRows::most_of_bytes : DotRows::most_vectors;
    if (p.rows > most) return "more than " + std::to_string(most) + " rows";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }

  std::vector<std::string> param_names() const override { return DotParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const auto vectors = static_cast<int>(linear_params(problem).rows);
    std::vector<Tuning> list{DotParams{4, 1}, DotParams{4, 0}};
    if (DotRows::has_streams(8, vectors)) list.push_back(DotParams{8, 1}), list.push_back(DotParams{8, 0});
    return list;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    const auto vectors = static_cast<int>(linear_params(problem).rows);
    const auto params = DotParams::of(tuning);
    if (!DotRows::has_streams(params.streams, vectors)) {
      throw Error("streams must be 4, or 8 for one row, not " + std::to_string(params.streams));
    }
    parse_flag("fetch", params.fetch);
    return std::make_unique<PreparedDot>(problem, dot_rows_kernel(info().isa), weights_, params);
  }

 private:
  DType weights_;
};

}  // namespace

void linear_dot_int8(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DotLinear>(isa, DType::int8);
}

void linear_dot(RoutineList& list) {
  for (const DType weights : {DType::float32, DType::float16, DType::bfloat16}) {
    for (Isa isa : all_isas()) list.add<DotLinear>(isa, weights);
  }
}

}  // namespace softneuro
