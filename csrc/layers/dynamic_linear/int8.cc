// Rows that are brought to bytes first, x quantized weights.
#include <algorithm>

#include "kernels/activate/activate.h"
#include "layers/contract/params.h"
#include "layers/dynamic_linear/dynamic_linear.h"
#include "layers/linear/rows.h"
#include "layers/quantized/int8.h"
#include "layers/shared/grid.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {
namespace {

SN_PARAMS(DynamicInt8Params, split);

Int8Shape int8_shape(const LinearParams& p) { return {1, p.k, p.c}; }

const Quantization& weight_quantization(const Problem& problem) {
  return *problem.layer->weight("weight")->desc().quantization;
}

bool has_one_zero_point(const Quantization& q) {
  return std::all_of(q.zero_points.begin(), q.zero_points.end(), [&](int32_t z) { return z == q.zero_points[0]; });
}

bool has_zero_points(const Quantization& q) {
  return std::any_of(q.zero_points.begin(), q.zero_points.end(), [](int32_t z) { return z != 0; });
}

// What is known of a row once it is bytes.
struct ByteRow {
  float scale;
  int32_t zero;   // before it was moved
  int32_t total;  // of its bytes less their zero point
};

class PreparedDynamicInt8 final : public PreparedSplit {
 public:
  PreparedDynamicInt8(const Problem& problem, Isa isa, const DynamicInt8Params& params,
                      std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        p_(dynamic_linear_params(*problem.layer, problem.in[0])),
        gemm_kernels_(*gemm_int8_kernels(isa)),
        row_kernels_(*dynamic_rows_kernels(vectors_of(isa))),
        to_bytes_(quantize_kernels(vectors_of(isa))->to_bytes),
        activate_(activate_kernel(vectors_of(isa))),
        post_(problem.layer->post) {
    const auto [rows, c, k] = p_.size;
    if (rows * k == 0) return;
    gemm_ = int8_gemm(problem, int8_shape(p_.size), *packed_, DType::float32);
    gemm_.m = narrow(rows);
    gemm_.a_stride = gemm_.k;
    end_.columns = packed_->at<int32_t>("columns");
    end_.zeros = packed_->find<int32_t>("zeros");
    end_.scale = packed_->at<float>("scale");
    end_.bias = packed_->at<float>("bias");
    panels_ = ceil_div(narrow(k), GemmInt8::block);
    const double products = static_cast<double>(rows * k) * static_cast<double>(c);
    const double bytes = static_cast<double>(rows * (c + 4 * k)) + static_cast<double>(k * c);
    split_ =
        WorkSplit(1, panels_, rows, worth_threads(0.5 * products, bytes, problem.threads), parse_split(params.split));
    quantizing_ = std::min(rows, task_count(rows * c, problem.threads));
    byte_rows_ = round_to_line(static_cast<size_t>(rows) * static_cast<size_t>(gemm_.k));
    row_starts_ = byte_rows_ + round_to_line(static_cast<size_t>(rows) * sizeof(ByteRow));
    ranges_ = row_starts_ + round_to_line(static_cast<size_t>(rows) * sizeof(int32_t));
    folds_ = (!p_.rows || rows == 1) && has_one_zero_point(weight_quantization(problem));
    if (!folds_) {
      gemm_.epilogue = {};
      gemm_.epilogue.dst.type = DType::int32;
    }
    tile_ = folds_ ? 2 * folded_bytes() : round_to_line(sizeof(int32_t) * most_sums);
  }

  WorkspaceSize workspace() const override {
    if (split_.tasks == 0) return {};
    return {.shared = ranges_ + static_cast<size_t>(quantizing_) * sizeof(FloatRange),
            .task = tile_ + round_to_line(gemm_kernels_.scratch_bytes(gemm_)),
            .tasks = split_.tasks};
  }

  void run(const RunArgs& args) const override {
    if (split_.tasks == 0) return;
    const BlobRows x(args.in[0]);
    auto* ranges = reinterpret_cast<FloatRange*>(args.workspace.shared() + ranges_);
    const auto for_rows = [&](const auto& body) {
      args.parallel_for(quantizing_, [&](int64_t task) { body(task, split_range(p_.size.rows, quantizing_, task)); });
    };
    if (!p_.rows) {
      for_rows([&](int64_t task, Range rows) { ranges[task] = range_of(x, rows); });
    }
    for_rows([&](int64_t, Range rows) {
      FloatRange all{0, 0};
      for (int64_t i = 0; !p_.rows && i < quantizing_; ++i) include(all, ranges[i]);
      QuantizeSteps steps = p_.steps(all);
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        if (p_.rows) steps = p_.steps(range_of(x, {row, row + 1}));
        quantize(args, x, row, steps);
      }
    });
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      if (folds_) return multiply_all(args, panels, rows, scratch);
      for (Range some = rows; some.begin < rows.end; some.begin = some.end) {
        some.end = std::min(some.begin + most_rows, rows.end);
        multiply(args, panels, some, scratch);
      }
    });
  }

 private:
  // Limits of a tile of sums. Its weights stay in the nearer caches while its rows pass.
  static constexpr int64_t most_rows = 256, most_sums = 16384;
  static int64_t most_columns(int64_t rows) {
    constexpr int64_t pass = 4 * GemmInt8::block;
    return std::max<int64_t>(most_sums / rows / pass, 1) * pass;
  }

  FloatRange range_of(const BlobRows& x, Range rows) const {
    const int64_t c = p_.size.c;
    FloatRange range{0, 0};
    for (int64_t row = rows.begin, next; row < rows.end; row = next) {
      next = x.row_stride == c ? x.run_end(row, rows.end) : row + 1;
      include(range, row_kernels_.range(x.row(row), (next - row) * c));
    }
    return range;
  }

  uint8_t* bytes_of(const RunArgs& args, int64_t row) const {
    return reinterpret_cast<uint8_t*>(args.workspace.shared()) + row * gemm_.k;
  }
  ByteRow* byte_rows(const RunArgs& args) const {
    return reinterpret_cast<ByteRow*>(args.workspace.shared() + byte_rows_);
  }

  // Where all weights have the same zero point.
  int32_t* row_starts(const RunArgs& args) const {
    return reinterpret_cast<int32_t*>(args.workspace.shared() + row_starts_);
  }

  void quantize(const RunArgs& args, const BlobRows& x, int64_t row, QuantizeSteps steps) const {
    const int64_t c = p_.size.c;
    const int32_t by = p_.moved_by();
    ByteRow& known = byte_rows(args)[row] = {steps.scale, steps.zero, 0};
    steps.zero += by, steps.least += by, steps.most += by;
    uint8_t* const bytes = bytes_of(args, row);
    to_bytes_(steps, x.row(row), bytes, c);
    std::fill(bytes + c, bytes + gemm_.k, uint8_t{0});
    if (end_.zeros == nullptr) return;
    known.total = row_kernels_.sum(bytes, c) - narrow(c) * steps.zero;
    row_starts(args)[row] = -known.total * end_.zeros[0];
  }

  size_t folded_bytes() const { return static_cast<size_t>(panels_) * GemmInt8::block * sizeof(float); }

  // The kernel finishes its sums itself where all rows have one scale.
  void multiply_all(const RunArgs& args, Range panels, Range rows, std::byte* scratch) const {
    const BlobRows out(args.out), residual(args.in[post_.residual ? 1 : 0]);
    GemmInt8 call = gemm_;
    DynamicRow end = end_;
    const ByteRow& known = byte_rows(args)[rows.begin];
    end.row = known.scale, end.zero = known.zero;
    auto* start = reinterpret_cast<int32_t*>(scratch);
    auto* scale = reinterpret_cast<float*>(scratch + folded_bytes());
    const int64_t first = panels.begin * GemmInt8::block;
    end.columns += first, end.scale += first;
    row_kernels_.fold(end, gemm_.start + first, start + first, scale + first,
                      (panels.end - panels.begin) * GemmInt8::block);
    call.n = narrow(p_.size.k);
    call.start = start;
    call.epilogue.scale = scale;
    call.dst_stride = out.row_stride;
    for (int64_t row = rows.begin, next; row < rows.end; row = next) {
      next = even_rows(out, out, post_.residual ? &residual : nullptr, row, rows.end);
      call.m = static_cast<int>(next - row);
      call.a = bytes_of(args, row);
      call.dst = out.row(row);
      if (end_.zeros != nullptr) call.row_start = row_starts(args) + row;
      if (post_.residual) call.epilogue.residual = residual.row(row);
      gemm_kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch + tile_);
    }
  }

  // A tile of sums at a time, which stays in the nearer caches.
  void multiply(const RunArgs& args, Range panels, Range rows, std::byte* scratch) const {
    const BlobRows out(args.out), residual(args.in[post_.residual ? 1 : 0]);
    const ByteRow* known = byte_rows(args);
    auto* sums = reinterpret_cast<int32_t*>(scratch);
    GemmInt8 call = gemm_;
    call.m = static_cast<int>(rows.end - rows.begin);
    call.a = bytes_of(args, rows.begin);
    call.dst = sums;
    const int64_t step = most_columns(call.m);
    for (int64_t column = panels.begin * GemmInt8::block; column < panels.end * GemmInt8::block; column += step) {
      const int64_t padded = std::min(step, panels.end * GemmInt8::block - column);
      const int64_t columns = std::min(padded, p_.size.k - column);
      call.n = static_cast<int>(columns);
      call.b = gemm_.b + column * gemm_.k;
      call.start = gemm_.start + column;
      call.dst_stride = padded;
      gemm_kernels_.run(call, 0, static_cast<int>(padded / GemmInt8::block), 0, call.m, scratch + tile_);
      DynamicRow end = end_;
      end.columns += column, end.scale += column, end.bias += column;
      if (end.zeros != nullptr) end.zeros += column;
      for (int64_t i = 0; i < call.m; ++i) {
        const int64_t row = rows.begin + i;
        end.sums = sums + i * padded;
        end.row = known[row].scale, end.zero = known[row].zero, end.total = known[row].total;
        float* dst = out.row(row) + column;
        const float* added = post_.residual ? residual.row(row) + column : nullptr;
        row_kernels_.finish(end, dst, columns);
        if (!post_.empty()) activate_(dst, dst, added, columns, post_.activation, nullptr);
      }
    }
  }

  DynamicLinearParams p_;
  const GemmInt8Kernels& gemm_kernels_;
  const DynamicRowsKernels& row_kernels_;
  decltype(QuantizeKernels::to_bytes) to_bytes_;
  ActivateKernel activate_;
  PostOps post_;
  GemmInt8 gemm_;
  DynamicRow end_;
  bool folds_ = false;
  int panels_ = 0;
  int64_t quantizing_ = 0;                              // tasks
  size_t byte_rows_ = 0, row_starts_ = 0, ranges_ = 0;  // where they begin in what tasks share, behind the bytes
  size_t tile_ = 0;                                     // bytes of a task's sums
};

class DynamicInt8 final : public Routine {
 public:
  explicit DynamicInt8(Isa isa)
      : Routine({.layer_type = "dynamic_linear", .algorithm = "int8", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = dynamic_linear_params(*problem.layer, problem.in[0]).size;
    const ConstantData& weight = *problem.layer->weight("weight");
    const Quantization& q = weight_quantization(problem);
    if (!weight.at_hand()) return "weights are computed";
    if (!q.is_signed()) return "the weights' bytes are not signed";
    if (q.axis > 0) return "the weights have a scale for each of their inputs";
    if (p.c > (has_zero_points(q) ? GemmInt8::most_k / 2 : GemmInt8::most_k)) {
      return "sums of " + std::to_string(p.c) + " products may overflow";
    }
    if (static_cast<size_t>(p.rows * (p.c + GemmInt8::group)) > most_scratch) return "too many bytes between";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }

  std::vector<std::string> param_names() const override { return DynamicInt8Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = dynamic_linear_params(*problem.layer, problem.in[0]).size;
    const int split = likely_linear_split(p);
    std::vector<Tuning> list{DynamicInt8Params{split}};
    if (problem.threads > 1 && p.rows > 1) list.push_back(DynamicInt8Params{1 - split});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const LinearParams p = dynamic_linear_params(*problem.layer, problem.in[0]).size;
    Packing packing = dynamic_int8_packing(int8_shape(p));
    if (has_zero_points(weight_quantization(problem))) {
      packing.add("zeros", round_up(p.k, GemmInt8::block), DType::int32, p.k);
    }
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const DynamicLinearParams p = dynamic_linear_params(*problem.layer, problem.in[0]);
    pack_dynamic_int8(problem, int8_shape(p.size), int8_weights(problem).get(), p.moved_by(), to);
    const Quantization& q = weight_quantization(problem);
    if (!has_zero_points(q)) return;
    auto* const zeros = to.at<int32_t>("zeros");
    std::fill_n(zeros, round_up(p.size.k, GemmInt8::block), 0);
    for (int64_t j = 0; j < p.size.k; ++j) zeros[j] = q.zero_points[q.axis < 0 ? 0 : static_cast<size_t>(j)];
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedDynamicInt8>(problem, info().isa, DynamicInt8Params::of(tuning), std::move(packed));
  }
};

}  // namespace

void dynamic_linear_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) list.add<DynamicInt8>(isa);
}

}  // namespace softneuro
