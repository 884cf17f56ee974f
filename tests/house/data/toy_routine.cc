// The smallest complete routine: linear as three loops. Compiled only by the test that shows how a routine is added.
#include <algorithm>

#include "layers/contract/routine.h"
#include "layers/linear/linear.h"

namespace softneuro {
namespace {

class PreparedToy final : public Prepared {
 public:
  PreparedToy(LinearParams params, std::shared_ptr<const Packed> packed)
      : p_(params),
        packed_(std::move(packed)),
        weights_(packed_->at<float>("weights")),
        bias_(packed_->find<float>("bias")) {}

  void run(const RunArgs& args) const override {
    const int64_t images = std::max<int64_t>(args.out.shape[0], 1), rows = p_.rows / images;
    args.parallel_for(args.out.shape[0], [&](int64_t image) {
      const float* src = args.in[0].f32() + image * args.in[0].strides[0];
      float* dst = args.out.f32() + image * args.out.strides[0];
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t k = 0; k < p_.k; ++k) {
          double sum = bias_ != nullptr ? bias_[k] : 0;
          for (int64_t c = 0; c < p_.c; ++c) sum += double{src[row * p_.c + c]} * weights_[k * p_.c + c];
          dst[row * p_.k + k] = static_cast<float>(sum);
        }
    });
  }

 private:
  LinearParams p_;
  std::shared_ptr<const Packed> packed_;
  const float *weights_, *bias_;
};

class Toy final : public Routine {
 public:
  Toy()
      : Routine({.layer_type = "linear", .algorithm = "toy", .isa_in_name = false, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    if (problem.out().shape.rank() < 2) return "needs a batch axis";
    if (!problem.layer->post.empty()) return "absorbs nothing";
    return {};
  }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    Packing packing;
    packing.add("weights", p.k * p.c);
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    pack_padded(&problem.layer->weight("weight"), to, "weights");
    pack_bias(*problem.layer, to);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedToy>(linear_params(*problem.layer, problem.in[0]), std::move(packed));
  }
};

}  // namespace

void linear_toy(RoutineList& list) { list.add<Toy>(); }

}  // namespace softneuro
