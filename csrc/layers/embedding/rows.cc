// Rows copied from where the model has them, in its own type: a table of words is too large to be packed beside it.
#include <cstring>

#include "kernels/convert/convert.h"
#include "layers/embedding/embedding.h"
#include "layers/shared/moving.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

bool is_half(const ConstantData& weight) {
  const DType dtype = weight.dtype();
  return (dtype == DType::float16 || dtype == DType::bfloat16) && weight.at_hand() && !weight.has_rows();
}

class PreparedRows final : public Prepared {
 public:
  PreparedRows(const Problem& problem, Isa isa)
      : threads_(problem.threads), from_end_(problem.layer->attrs.flag("from_end", false)) {
    const ConstantData& weight = *problem.layer->weight("weight");
    rows_ = weight.shape()[0], length_ = weight.shape()[1];
    if (is_half(weight)) {
      memory_ = weight.memory();
      data_ = static_cast<const std::byte*>(memory_.get());
      bytes_ = static_cast<int64_t>(dtype_bytes(weight.dtype(), 1));
      convert_ = convert_kernel(isa, weight.dtype(), DType::float32);
    } else {
      held_ = HeldRows(weight);
      data_ = reinterpret_cast<const std::byte*>(held_.values());
    }
  }

  void run(const RunArgs& args) const override {
    args.in[0].schema.dtype == DType::int64 ? run<int64_t>(args) : run<int32_t>(args);
  }

 private:
  template <typename Id>
  void run(const RunArgs& args) const {
    const TensorView &ids = args.in[0], &out = args.out;
    const int64_t count = ids.shape.elements(), image = count == 0 ? 1 : count / images(ids);
    const int64_t tasks = std::min(count, task_count(count * length_, threads_));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(count, tasks, task);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t n = i / image, rest = i % image;
        const int64_t id = static_cast<int64_t>(ids.as<Id>()[n * ids.strides[0] + rest]);
        const int64_t row = from_end_ && id < 0 ? id + rows_ : id;
        const bool exists = row >= 0 && row < rows_;
        if (!exists) args.reject();
        copy(exists ? row : 0, out.f32() + (ids.shape.rank() == 0 ? 0 : n * out.strides[0] + rest * length_));
      }
    });
  }

  void copy(int64_t row, float* to) const {
    const std::byte* const from = data_ + row * length_ * bytes_;
    if (convert_ == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(length_ * bytes_));
    } else {
      convert_(from, to, length_);
    }
    if (held_.factors() == nullptr) return;
    for (int64_t i = 0; i < length_; ++i) to[i] *= held_.factors()[row];
  }

  int threads_;
  bool from_end_;
  int64_t rows_, length_, bytes_ = sizeof(float);
  ConstantData::Memory memory_;  // of halves
  HeldRows held_;                // of anything else
  const std::byte* data_ = nullptr;
  ConvertKernel convert_ = nullptr;
};

class Rows final : public Routine {
 public:
  Rows(Isa isa, DType ids, bool halves)
      : Routine([&] {
          RoutineInfo info = halves ? vector_info("embedding", "convert", isa, Layout::nchw(), Layout::nchw())
                                    : moving_info("embedding", "copy", f32_nchw, f32_nchw);
          info.in.dtype = ids;
          return info;
        }()),
        halves_(halves) {}

  Refusal check(const Problem& problem) const override {
    if (is_half(*problem.layer->weight("weight")) != halves_) return "rows are of another type";
    return refuse_post_ops(problem);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedRows>(problem, info().isa);
  }

 private:
  bool halves_;
};

}  // namespace

void embedding_rows(RoutineList& list) {
  for (const DType ids : {DType::int64, DType::int32}) {
    list.add<Rows>(Isa::scalar, ids, false);
    for (const Isa isa : isas_best_first()) {
      if (convert_kernel(isa, DType::float16, DType::float32) != nullptr) list.add<Rows>(isa, ids, true);
    }
  }
}

}  // namespace softneuro
