// Products of pairs of quantized matrices. A strip of columns of b is packed at a time, as signed bytes: 128 less each.
#include "layers/quantized/int8.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "layers/contract/params.h"
#include "layers/matmul/matmul.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

SN_PARAMS(MatmulInt8Params, columns, split);

constexpr int block = GemmInt8::block, group = GemmInt8::group;
// No sum of so many products of a byte and another, both less a zero point, overflows.
constexpr int64_t most_k = 32768;

int64_t padded_k(const MatmulParams& p) { return (p.k + group - 1) / group * group; }

// A panel of b as gemm_int8_pack has it, `columns` of it; the sums of its columns.
struct Panel {
  uint8_t* to;
  int columns;
  int32_t* sums;
};

// Packs b[k][n].
void pack_rows(const Panel& panel, const uint8_t* from, int64_t stride, int64_t k) {
  std::memset(panel.sums, 0, block * sizeof(int32_t));
  for (int64_t l = 0; l < k; l += group, from += group * stride) {
    uint8_t* to = panel.to + l * block;
    if (l + group > k || panel.columns < block) {
      for (int column = 0; column < panel.columns; ++column) {
        for (int64_t i = 0; i < std::min<int64_t>(group, k - l); ++i) {
          to[column * group + i] = from[i * stride + column] ^ 0x80;
          panel.sums[column] += from[i * stride + column] - 128;
        }
      }
      continue;
    }
    uint32_t words[block];
    for (int column = 0; column < block; ++column) {
      const uint32_t b[group] = {from[column], from[stride + column], from[2 * stride + column],
                                 from[3 * stride + column]};
      words[column] = (b[0] | b[1] << 8 | b[2] << 16 | b[3] << 24) ^ 0x80808080;
      panel.sums[column] += static_cast<int32_t>(b[0] + b[1] + b[2] + b[3]) - 128 * group;
    }
    std::memcpy(to, words, sizeof words);
  }
}

// Packs b[n][k].
void pack_columns(const Panel& panel, const uint8_t* from, int64_t stride, int64_t k) {
  for (int column = 0; column < panel.columns; ++column, from += stride) {
    uint8_t* to = panel.to + column * group;
    int64_t l = 0;
    for (; l + group <= k; l += group) {
      uint32_t word;
      std::memcpy(&word, from + l, group);
      word ^= 0x80808080;
      std::memcpy(to + l * block, &word, group);
    }
    for (int64_t i = l; i < k; ++i) to[l * block + i - l] = from[i] ^ 0x80;
    panel.sums[column] = std::accumulate(from, from + k, static_cast<int32_t>(-128 * k));
  }
}

class PreparedInt8Matmul final : public PreparedSplit {
 public:
  PreparedInt8Matmul(const Problem& problem, const GemmInt8Kernels& kernels, const MatmulInt8Params& params, DType out)
      : PreparedSplit(problem), kernels_(kernels), p_(matmul_params(*problem.layer, problem.in[0], problem.in[1])) {
    const Quantization &a = *problem.in[0].quantization, &b = *problem.in[1].quantization;
    zero_a_ = a.zero_points[0], zero_b_ = b.zero_points[0] - 128;
    scale_ =
        static_cast<float>(static_cast<double>(a.scales[0]) * static_cast<double>(b.scales[0]) * int8_unit(problem));
    gemm_.k = static_cast<int>(padded_k(p_));
    gemm_.epilogue = int8_epilogue(problem, out);
    if (problem.out().shape.elements() == 0) return;
    const int64_t panels = (p_.n + block - 1) / block;
    strip_ = std::min<int64_t>(params.columns / block, panels);
    const double batch = static_cast<double>(p_.batch.elements());
    const double products = batch * static_cast<double>(p_.m * p_.n) * static_cast<double>(p_.k);
    const double bytes = batch * static_cast<double>(p_.m * p_.n + (p_.m + p_.n) * p_.k);
    split_ = WorkSplit(p_.batch.elements(), panels, p_.m, worth_threads(0.5 * products, bytes, problem.threads),
                       parse_split(params.split));
    gemm_.m = narrow(p_.m);
    copied_ = p_.transpose_a || gemm_.k != p_.k;
    const auto section = [&](int64_t size) {
      const size_t at = scratch_;
      scratch_ += round_to_line(static_cast<size_t>(size));
      return at;
    };
    section(strip_ * block * gemm_.k);
    start_ = section(strip_ * block * 4);
    scales_ = section(strip_ * block * 4);
    rows_ = section(p_.m * 4);
    copy_ = section(copied_ ? p_.m * gemm_.k : 0);
    kernel_ = section(0);
    scratch_ += round_to_line(kernels.scratch_bytes(gemm_));
  }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      std::byte* scratch = args.workspace.task(task);
      auto* scales = reinterpret_cast<float*>(scratch + scales_);
      std::fill(scales, scales + strip_ * block, scale_);
      split_.for_task(task,
                      [&](int64_t index, Range panels, Range rows) { run_part(args, index, panels, rows, scratch); });
    });
  }

 private:
  void run_part(const RunArgs& args, int64_t index, Range panels, Range rows, std::byte* scratch) const {
    const Matrix b = matrix_at(args.in[1], p_.batch, index), dst = matrix_at(args.out, p_.batch, index);
    const Matrix residual = residual_ ? matrix_at(args.in[2], p_.batch, index) : Matrix();
    GemmInt8 call = with_rows(matrix_at(args.in[0], p_.batch, index), rows, scratch);
    call.b = reinterpret_cast<const int8_t*>(scratch);
    call.start = reinterpret_cast<const int32_t*>(scratch + start_);
    call.epilogue.scale = reinterpret_cast<const float*>(scratch + scales_);
    call.dst_stride = dst.stride;
    const int64_t bytes = dtype_bytes(args.out.schema.dtype, 1);
    for (int64_t panel = panels.begin; panel < panels.end; panel += strip_) {
      const int64_t count = std::min(strip_, panels.end - panel), column = panel * block;
      call.n = static_cast<int>(std::min(count * block, p_.n - column));
      pack(b, column, call.n, scratch);
      const auto at = [&](const Matrix& m, int64_t row) {
        return static_cast<std::byte*>(m.data) + (row * m.stride + column) * bytes;
      };
      // The kernel wants the output's stride; where the residual has another, it goes row by row.
      const bool together = !residual_ || residual.stride == dst.stride;
      GemmInt8 part = call;
      part.m = together ? call.m : 1;
      for (int row = 0; row < call.m; row += part.m) {
        part.a = call.a + row * call.a_stride;
        part.row_start = call.row_start != nullptr ? call.row_start + row : nullptr;
        part.dst = at(dst, rows.begin + row);
        if (residual_) part.epilogue.residual.data = at(residual, rows.begin + row);
        kernels_.run(part, 0, static_cast<int>(count), 0, part.m, scratch + kernel_);
      }
    }
  }

  // Rows of a, copied if kernels cannot have them in place, and what b's zero point adds to each.
  GemmInt8 with_rows(const Matrix& a, Range rows, std::byte* scratch) const {
    GemmInt8 call = gemm_;
    call.m = static_cast<int>(rows.end - rows.begin);
    call.a = p_.transpose_a ? a.as<uint8_t>() + rows.begin : a.as<uint8_t>(rows.begin);
    call.a_stride = a.stride;
    if (copied_) {
      auto* copy = reinterpret_cast<uint8_t*>(scratch + copy_);
      std::memset(copy, 0, static_cast<size_t>(call.m) * static_cast<size_t>(gemm_.k));
      for (int64_t i = 0; i < (p_.transpose_a ? p_.k : call.m); ++i) {
        const uint8_t* from = call.a + i * a.stride;
        if (p_.transpose_a) {
          for (int64_t row = 0; row < call.m; ++row) copy[row * gemm_.k + i] = from[row];
        } else {
          std::memcpy(copy + i * gemm_.k, from, static_cast<size_t>(p_.k));
        }
      }
      call.a = copy;
      call.a_stride = gemm_.k;
    }
    if (zero_b_ == 0) return call;
    auto* starts = reinterpret_cast<int32_t*>(scratch + rows_);
    for (int row = 0; row < call.m; ++row) {
      const uint8_t* bytes = call.a + row * call.a_stride;
      starts[row] = -zero_b_ * std::accumulate(bytes, bytes + p_.k, int32_t{0});
    }
    call.row_start = starts;
    return call;
  }

  void pack(const Matrix& b, int64_t column, int64_t columns, std::byte* scratch) const {
    auto* to = reinterpret_cast<uint8_t*>(scratch);
    auto* start = reinterpret_cast<int32_t*>(scratch + start_);
    const int64_t bytes = static_cast<int64_t>(block) * gemm_.k;
    const auto k = static_cast<int32_t>(p_.k);
    for (int64_t first = 0; first < columns; first += block, to += bytes, start += block) {
      const Panel panel{to, static_cast<int>(std::min<int64_t>(block, columns - first)), start};
      if (panel.columns < block || gemm_.k != p_.k) std::memset(to, 0, static_cast<size_t>(bytes));
      const auto* from = b.as<uint8_t>();
      if (p_.transpose_b) {
        pack_columns(panel, from + (column + first) * b.stride, b.stride, p_.k);
      } else {
        pack_rows(panel, from + column + first, b.stride, p_.k);
      }
      for (int i = 0; i < block; ++i) start[i] = i < panel.columns ? -zero_a_ * (start[i] - k * zero_b_) : 0;
    }
  }

  const GemmInt8Kernels& kernels_;
  MatmulParams p_;
  bool copied_ = false;
  int32_t zero_a_ = 0, zero_b_ = 0;  // of signed bytes
  float scale_ = 1;
  GemmInt8 gemm_;
  int64_t strip_ = 1;                                                 // panels of b packed at a time
  size_t start_ = 0, scales_ = 0, rows_ = 0, copy_ = 0, kernel_ = 0;  // in a task's bytes
};

class Int8Matmul final : public Routine {
 public:
  Int8Matmul(Isa isa, DType out) : Routine(int8_info("matmul", isa, Layout::nchw(), out)) {}

  Refusal check(const Problem& problem) const override {
    const MatmulParams p = matmul_params(*problem.layer, problem.in[0], problem.in[1]);
    if (const Refusal refusal = check_int8_blobs(problem); !refusal.accepted()) return refusal;
    if (p.k > most_k) return "sums of " + std::to_string(p.k) + " products may overflow";
    return check_kernel_sizes({p.m, p.n, p.k});
  }

  std::vector<std::string> param_names() const override { return MatmulInt8Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const MatmulParams p = matmul_params(*problem.layer, problem.in[0], problem.in[1]);
    const int64_t fit = l2_bytes() / 2 / std::max<int64_t>(padded_k(p), 1) / 64 * 64;
    const int columns = static_cast<int>(std::clamp<int64_t>(fit, 64, 1024));
    const int split = static_cast<int>(p.m > p.n ? SplitBy::rows : SplitBy::panels);
    std::vector<Tuning> list{MatmulInt8Params{columns, split}};
    if (problem.threads > 1) list.push_back(MatmulInt8Params{columns, 1 - split});
    return list;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    const auto params = MatmulInt8Params::of(tuning);
    if (params.columns < block || params.columns % block != 0) {
      throw Error("columns must be a positive multiple of 16, not " + std::to_string(params.columns));
    }
    return std::make_unique<PreparedInt8Matmul>(problem, *gemm_int8_kernels(info().isa), params, info().out.dtype);
  }
};

}  // namespace

void matmul_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    for (const DType out : {DType::qint8, DType::float32}) list.add<Int8Matmul>(isa, out);
  }
}

}  // namespace softneuro
