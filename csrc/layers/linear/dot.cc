// A few rows x weights as the model has them, in its own type: no packing, which would be a second copy of what is
// often most of a model, and where weights come from memory its bandwidth is the limit.
#include "kernels/dot_rows/dot_rows.h"
#include "layers/gemm_tasks.h"
#include "layers/held_rows.h"
#include "layers/linear/rows.h"

namespace softneuro {
namespace {

class PreparedDot final : public Prepared {
 public:
  PreparedDot(const Problem& problem, DotRowsKernel run, DType type, const Tuning& tuning)
      : run_(run), residual_(problem.layer->post.residual) {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    const ConstantData& weight = *problem.layer->weight("weight");
    args_.type = type;
    if (type == DType::float32) {
      floats_ = HeldRows(weight);
      args_.weights = floats_.values();
      args_.factors = floats_.factors();
    } else {
      halves_ = weight.memory();
      args_.weights = halves_.get();
    }
    if (const Constant* bias = problem.layer->find_weight("bias")) {
      const auto values = (*bias)->values();
      bias_.assign(values.get(), values.get() + p.k);
    }
    args_.k = static_cast<int>(p.c);
    args_.streams = tuning[0];
    args_.fetch = tuning[1] != 0;
    args_.epilogue.bias = bias_.empty() ? nullptr : bias_.data();
    args_.epilogue.activation = problem.layer->post.activation;
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto flop = 2.0 * static_cast<double>(p.rows * p.k * p.c);
    const auto bytes = static_cast<double>(dtype_bytes(type, p.k * p.c));
    constexpr int64_t unit = 8;  // most streams
    split_ = WorkSplit(1, p.k, 1, worth_threads(flop, bytes, problem.threads), SplitBy::panels, unit);
  }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      work.for_task(task, [&](int64_t, Range columns, Range) {
        for_even_rows(args, residual_, {0, rows_}, [&](const EvenRows& even) {
          DotRows call = args_;
          call.vectors = even.count;
          call.x = even.src;
          call.x_stride = even.src_stride;
          call.dst = even.dst;
          call.dst_stride = even.dst_stride;
          call.epilogue.residual = even.residual;
          run_(call, static_cast<int>(columns.begin), static_cast<int>(columns.end));
        });
      });
    });
  }

 private:
  DotRowsKernel run_;
  HeldRows floats_;
  ConstantData::Memory halves_;
  std::vector<float> bias_;
  bool residual_;
  DotRows args_{};
  int64_t rows_ = 0;
  WorkSplit split_;
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
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    const ConstantData& weight = *problem.layer->weight("weight");
    if (weight.dtype() != weights_) return "weights are not " + std::string(dtype_name(weights_));
    if (weights_ != DType::float32 && weight.memory() == nullptr) return "weights are computed";
    if (p.rows > DotRows::most_vectors) return "more than " + std::to_string(DotRows::most_vectors) + " rows";
    return check_gemm_sizes(p.rows, p.k, p.c);
  }

  std::vector<std::string> param_names() const override { return {"streams", "fetch"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const auto vectors = static_cast<int>(linear_params(*problem.layer, problem.in[0]).rows);
    if (!DotRows::has_streams(8, vectors)) return {{4, 1}, {4, 0}};
    return {{4, 1}, {4, 0}, {8, 1}, {8, 0}};
  }

  size_t packed_bytes(const Problem&, const Tuning&) const override { return 0; }
  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    const auto vectors = static_cast<int>(linear_params(*problem.layer, problem.in[0]).rows);
    if (!DotRows::has_streams(tuning[0], vectors)) {
      throw Error("streams must be 4, or 8 for one row, not " + std::to_string(tuning[0]));
    }
    if (tuning[1] != 0 && tuning[1] != 1) throw Error("fetch must be 0 or 1, not " + std::to_string(tuning[1]));
    return std::make_unique<PreparedDot>(problem, dot_rows_kernel(info().isa), weights_, tuning);
  }

 private:
  DType weights_;
};

}  // namespace

void linear_dot(RoutineList& list) {
  for (const DType weights : {DType::float32, DType::float16, DType::bfloat16}) {
    for (Isa isa : all_isas()) list.add<DotLinear>(isa, weights);
  }
}

}  // namespace softneuro
