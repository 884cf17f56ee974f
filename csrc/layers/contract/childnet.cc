#include "layers/contract/childnet.h"

#include <algorithm>

#include "base/lines.h"
#include "base/text.h"

namespace softneuro {
namespace {

// A blob between two parts. The matrices along axis 0 are an odd number of lines apart, for what walks across them
// would meet itself in the same sets of a cache.
TensorView inner_view(const ChildPart& part) {
  TensorView view = dense_view(nullptr, part.out.shape, part.choice.routine->info().out);
  view.strides[0] = odd_lines(view.image_elements());
  return view;
}
size_t view_bytes(const TensorView& view) { return dtype_bytes(view.schema.dtype, view.shape[0] * view.strides[0]); }

class PreparedChildnet final : public Prepared {
 public:
  PreparedChildnet(const Childnet& net, int threads, const std::shared_ptr<const Packed>& packed) {
    for (size_t i = 0; i < net.size(); ++i) {
      const RoutineChoice& choice = net[i].choice;
      const Problem problem = net[i].problem(threads);
      auto part = part_of(packed, std::to_string(i));
      steps_.push_back(
          {choice.routine->prepare(problem, choice.tuning, std::move(part)), {}, net[i].layer->post.residual});
      const WorkspaceSize own = steps_.back().prepared->workspace();
      size_.shared = std::max(size_.shared, own.shared_lines());
      size_.task = std::max(size_.task, own.task);
      size_.tasks = std::max(size_.tasks, own.tasks);
      if (i + 1 < net.size()) steps_.back().out = inner_view(net[i]);
    }
    for (const Step& step : steps_) blobs_ += step.out.shape.rank() == 0 ? 0 : view_bytes(step.out);
    blobs_ = round_to_line(blobs_);
    size_.shared += blobs_;
  }

  WorkspaceSize workspace() const override { return size_; }

  void run(const RunArgs& args) const override {
    TensorView in[2] = {args.in[0], {}};
    std::byte* blob = args.workspace.shared();
    for (const Step& step : steps_) {
      const bool last = &step == &steps_.back();
      TensorView out = args.out;
      if (!last) {
        out = step.out;
        out.data = blob;
        blob += view_bytes(out);
      }
      if (step.residual) in[1] = args.in[1];
      step.prepared->run({in, &out, args.workspace.without(blobs_), args.parallel_for});
      in[0] = out;
    }
  }

 private:
  struct Step {
    std::unique_ptr<const Prepared> prepared;
    TensorView out;  // without its memory; the last step's is the caller's
    bool residual;
  };
  std::vector<Step> steps_;
  size_t blobs_ = 0;    // bytes between the parts
  WorkspaceSize size_;  // these and the parts' own
};

}  // namespace

std::string ChildnetRoutine::source_hash() const {
  std::string hashes = Routine::source_hash();
  for (const std::string_view type : part_types()) {
    for (const auto& routine : routines(type)) hashes += routine->source_hash();
  }
  return content_hash(hashes);
}

ChildPart child_part(Layer layer, std::vector<TensorDesc> in, RoutineChoice choice) {
  const auto main = static_cast<size_t>(static_cast<int>(in.size()) - (layer.post.residual ? 1 : 0));
  const OutputDescs outs = infer_outputs(layer_def(layer.type), layer, std::span(in).first(main));
  return {std::make_shared<const Layer>(std::move(layer)), std::move(in), outs.front(), std::move(choice)};
}

size_t childnet_blob_bytes(const Childnet& net) {
  size_t bytes = 0;
  for (size_t i = 0; i + 1 < net.size(); ++i) bytes += view_bytes(inner_view(net[i]));
  return bytes;
}

Packing ChildnetRoutine::packing(const Problem& problem, const Tuning& tuning) const {
  Packing packing;
  const Childnet net = childnet(problem, tuning);
  for (size_t i = 0; i < net.size(); ++i) {
    const auto& [routine, own] = net[i].choice;
    packing.add(std::to_string(i), routine->packing(net[i].problem(problem.threads), own));
  }
  return packing;
}

void ChildnetRoutine::pack(const Problem& problem, const Tuning& tuning, Packed& to) const {
  const Childnet net = childnet(problem, tuning);
  for (size_t i = 0; i < net.size(); ++i) {
    const auto& [routine, own] = net[i].choice;
    Packed part = to.part(std::to_string(i));
    if (!part.packing().empty()) routine->pack(net[i].problem(problem.threads), own, part);
  }
}

std::unique_ptr<const Prepared> ChildnetRoutine::prepare(const Problem& problem, const Tuning& tuning,
                                                         std::shared_ptr<const Packed> packed) const {
  return std::make_unique<PreparedChildnet>(childnet(problem, tuning), problem.threads, packed);
}

}  // namespace softneuro
