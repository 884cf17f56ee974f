// binary in every layout, with every way of broadcasting.
#include "layers/shared/pointwise.h"

#include "layers/binary/binary.h"

namespace softneuro {
namespace {

// Its constant operand as packed: [...] of the output's rank, or one number.
Shape constant_shape(const BinaryParams& p) {
  Shape shape;
  if (!p.other || p.other->elements() == 1) return shape;
  for (int axis = p.other->shape().rank(); axis < p.out.rank(); ++axis) shape.push_back(1);
  for (int64_t dim : p.other->shape()) shape.push_back(dim);
  return shape;
}

class BinaryPointwise final : public Routine {
 public:
  BinaryPointwise(Isa isa, const Schema& schema) : Routine(pointwise_info("binary", isa, schema)) {}

  Refusal check(const Problem& problem) const override {
    if (info().in.layout.kind == Layout::Kind::nchw) return {};
    for (int i = 0; i < operands(problem); ++i) {
      const Shape& shape = problem.in[static_cast<size_t>(i)].shape;
      if (shape.rank() != problem.out().shape.rank()) return "an operand of lower rank is row-major";
    }
    return {};
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    const BinaryParams p = params(problem);
    Packing packing;
    if (p.constant >= 0) add_in_layout(packing, "constant", constant_shape(p), constant_layout(p));
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const BinaryParams p = params(problem);
    const auto values = p.other ? p.other->values() : nullptr;
    pack_in_layout(p.other ? values.get() : &p.scalar, constant_shape(p), constant_layout(p), to, "constant");
  }

  // The constant's axes are counted from the output's last.
  std::string pack_key(const Problem& problem, const Tuning&) const override {
    return std::to_string(problem.out().shape.rank());
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    const BinaryParams p = params(problem);
    PointwiseJob job = pointwise_job(problem, info());
    job.op = p.function;
    if (p.constant < 0) {
      job.b = {problem.in[1].shape, 1, nullptr};
    } else {
      job.b = {constant_shape(p), -1, packed->at<float>("constant")};
      if (p.constant == 0) std::swap(job.a, job.b);
      if (p.function == ElementwiseOp::pow && p.constant == 1 && !p.other) job.op = power(p.scalar);
      job.packed = std::move(packed);
    }
    return prepare_pointwise(std::move(job));
  }

 private:
  Layout constant_layout(const BinaryParams& p) const {
    return constant_shape(p).rank() == 0 ? Layout::nchw() : info().in.layout;
  }
  static int operands(const Problem& problem) {
    return static_cast<int>(problem.in.size()) - (problem.layer->post.residual ? 1 : 0);
  }
  static BinaryParams params(const Problem& problem) {
    return binary_params(*problem.layer, std::span(problem.in).first(static_cast<size_t>(operands(problem))));
  }

  static ElementwiseOp power(float exponent) {
    if (exponent == 2.0f) return ElementwiseOp::square;
    if (exponent == 0.5f) return ElementwiseOp::root;
    if (exponent == -0.5f) return ElementwiseOp::inverse_root;
    return ElementwiseOp::pow;
  }
};

}  // namespace

void binary_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<BinaryPointwise>(isa, schema);
}

}  // namespace softneuro
