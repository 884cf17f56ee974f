#include "layers/shared/pointwise.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/activate/activate.h"
#include "layers/shared/strided_iteration.h"

namespace softneuro {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// A shape with ones in front, up to `rank`; that of a single number stays.
Shape aligned(const Shape& shape, int rank) {
  Shape result;
  if (shape.rank() == 0) return result;
  for (int axis = shape.rank(); axis < rank; ++axis) result.push_back(1);
  for (int64_t dim : shape) result.push_back(dim);
  return result;
}

void clear_padding(const TensorView& out) {
  const int64_t block = out.schema.layout.block, used = out.shape[1] % block;
  const int64_t pixels = out.shape.product(2, out.shape.rank());
  for (int64_t n = 0; n < out.shape[0]; ++n) {
    float* lanes = out.f32() + n * out.strides[0] + out.shape[1] / block * pixels * block + used;
    for (int64_t pixel = 0; pixel < pixels; ++pixel, lanes += block) {
      std::memset(lanes, 0, static_cast<size_t>(block - used) * sizeof(float));
    }
  }
}

class PreparedPointwise final : public Prepared {
 public:
  explicit PreparedPointwise(PointwiseJob job) : job_(std::move(job)), activate_(activate_kernel(job_.isa)) {
    const Shape& out = job_.out;
    if (!job_.op) job_.b = job_.a;
    plan_iteration(out, job_.layout, aligned(job_.a.shape, out.rank()), aligned(job_.b.shape, out.rank()), grid_,
                   strided_);
    strided_[OperandPlace::dst].batched = strided_[OperandPlace::residual].batched = out.rank() > 0;
    strided_[OperandPlace::a].batched = batched(job_.a);
    strided_[OperandPlace::b].batched = batched(job_.b);

    const Activation& after = job_.post.activation;
    finish_ = !job_.post.empty();
    if (job_.op) {
      kernel_ =
          elementwise_kernel(job_.isa, *job_.op, strided_[OperandPlace::a].access, strided_[OperandPlace::b].access);
      const bool relu = after.kind == ActivationKind::relu;
      if (!job_.post.residual && (relu || after.kind == ActivationKind::clamp)) {
        lo_ = relu ? 0 : after.a, hi_ = relu ? infinity : after.b;
        finish_ = false;
      }
    }
    clear_ = job_.layout.is_blocked() && out[1] % job_.layout.block != 0 && !(padding_result() == 0);
  }

  WorkspaceSize workspace() const override {
    int64_t elements = 0;
    for (const PointwiseOperand* operand : {&job_.a, &job_.b}) {
      if (realigned(*operand)) elements += operand->shape.elements();
    }
    return {.shared = static_cast<size_t>(elements) * sizeof(float)};
  }

  void run(const RunArgs& args) const override {
    Grid grid = grid_;
    StridedOperands strided = strided_;
    const Pointers data = start(args, strided);
    fold_batch(grid, strided);
    for_each_cell(grid, job_.threads, args.parallel_for, [&](const Cell& cell) {
      Pointers p;
      for (size_t who = 0; who < OperandPlace::count; ++who)
        p[who] = data[who] + operand_offset(grid, strided[who], cell);
      run_cell(strided, p, cell);
    });
    if (clear_) clear_padding(args.out);
  }

 private:
  using Pointers = std::array<float*, OperandPlace::count>;

  bool realigned(const PointwiseOperand& operand) const {
    return operand.input >= 0 && operand.shape.rank() < job_.out.rank() && operand.shape.rank() > 0;
  }
  bool batched(const PointwiseOperand& operand) const {
    return operand.input >= 0 && job_.out.rank() > 0 && operand.shape.rank() == job_.out.rank() &&
           operand.shape[0] == job_.out[0];
  }

  Pointers start(const RunArgs& args, StridedOperands& strided) const {
    Pointers data{};
    const auto take = [&](OperandPlace::Who who, const TensorView& view) {
      data[who] = view.f32();
      if (strided[who].batched) strided[who].outer[0] = view.strides[0];
    };
    take(OperandPlace::dst, args.out);
    auto* memory = reinterpret_cast<float*>(args.workspace.shared());
    for (const auto who : {OperandPlace::a, OperandPlace::b}) {
      const PointwiseOperand& operand = who == OperandPlace::a ? job_.a : job_.b;
      if (operand.input < 0) {
        data[who] = const_cast<float*>(operand.constant);  // only dst is written
        continue;
      }
      const TensorView& view = args.in[operand.input];
      take(who, view);
      if (!realigned(operand) || view.dense()) continue;
      // Its axis 0 is an inner one of the grid's, for which all strides are planned as dense.
      data[who] = memory;
      for (int64_t n = 0; n < view.shape[0]; ++n) {
        memory = std::copy_n(view.f32() + n * view.strides[0], view.image_elements(), memory);
      }
    }
    data[OperandPlace::residual] = data[OperandPlace::dst];
    if (job_.post.residual) take(OperandPlace::residual, args.in[operands()]);
    return data;
  }

  int operands() const { return 1 + std::max({job_.a.input, job_.op ? job_.b.input : -1, 0}); }

  void run_cell(const StridedOperands& strided, const Pointers& p, const Cell& cell) const {
    float* dst = p[OperandPlace::dst];
    const int64_t step = strided[OperandPlace::dst].row;
    if (kernel_ != nullptr) {
      kernel_({dst, p[OperandPlace::a], p[OperandPlace::b], p[OperandPlace::b] + job_.c_offset, cell.rows, cell.count,
               step, strided[OperandPlace::a].row, strided[OperandPlace::b].row, lo_, hi_});
    } else {
      for (int64_t r = 0; r < cell.rows; ++r) {
        activate_(dst + r * step, p[OperandPlace::a] + r * strided[OperandPlace::a].row, nullptr, cell.count,
                  job_.function, nullptr);
      }
    }
    if (!finish_) return;
    const int64_t residual_step = strided[OperandPlace::residual].row;
    const bool one_run = step == cell.count && (!job_.post.residual || residual_step == step);
    const int64_t runs = one_run ? 1 : cell.rows, length = one_run ? cell.rows * cell.count : cell.count;
    for (int64_t r = 0; r < runs; ++r) {
      const float* residual = job_.post.residual ? p[OperandPlace::residual] + r * residual_step : nullptr;
      activate_(dst + r * step, dst + r * step, residual, length, job_.post.activation, nullptr);
    }
  }

  // What a padding lane comes to, by doing it; NaN where the operands do not tell.
  float padding_result() const {
    const auto lane = [&](const PointwiseOperand& operand) {
      if (operand.shape.rank() == job_.out.rank() && operand.shape[1] == job_.out[1]) return 0.0f;
      const bool known = operand.constant != nullptr && operand.shape.rank() == 0;
      return known ? *operand.constant : std::numeric_limits<float>::quiet_NaN();
    };
    const float a = lane(job_.a), b = lane(job_.b), c = 0;
    float result = 0;
    if (job_.op) {
      elementwise_kernel(job_.isa, *job_.op, Access::full,
                         Access::full)({&result, &a, &b, &c, 1, 1, 0, 0, 0, lo_, hi_});
    } else {
      activate_(&result, &a, nullptr, 1, job_.function, nullptr);
    }
    if (finish_) activate_(&result, &result, nullptr, 1, job_.post.activation, nullptr);
    return result;
  }

  PointwiseJob job_;
  ActivateKernel activate_;
  ElementwiseKernel kernel_ = nullptr;
  Grid grid_;
  StridedOperands strided_;
  float lo_ = -infinity, hi_ = infinity;
  bool finish_ = false;  // residual and activation take a second step over each cell
  bool clear_ = false;   // padding lanes do not come to zero by themselves
};

}  // namespace

std::vector<Schema> vector_schemas(Isa isa) { return {f32_nchw, f32_nhwc, f32_blocked(isa_block(isa))}; }

RoutineInfo pointwise_info(const char* layer_type, Isa isa, const Schema& schema) {
  return {.layer_type = layer_type, .algorithm = "vector", .isa = isa, .in = schema, .out = schema, .inplace_input = 0};
}

Shape channel_shape(int64_t channels, int rank) {
  Shape shape{1, channels};
  while (shape.rank() < rank) shape.push_back(1);
  return shape;
}

PointwiseJob pointwise_job(const Problem& problem, const RoutineInfo& info) {
  PointwiseJob job;
  job.isa = info.isa;
  job.layout = info.out.layout;
  job.out = problem.out().shape;
  job.threads = problem.threads;
  job.post = problem.layer->post;
  job.a = {problem.in[0].shape, 0, nullptr};
  return job;
}

std::unique_ptr<const Prepared> prepare_pointwise(PointwiseJob job) {
  return std::make_unique<PreparedPointwise>(std::move(job));
}

}  // namespace softneuro
