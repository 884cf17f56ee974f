// Every conv2d routine serves conv1d: the memory of [N,C,L] is that of [N,C,1,L] in every layout.
#include "base/text.h"
#include "layers/contract/childnet.h"
#include "layers/contract/registry.h"
#include "layers/contract/routine.h"
#include "layers/conv1d/conv1d.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

const LayerDef& conv2d_layer();

namespace {

// A conv1d problem as conv2d sees it; owns the layer that the problem points to.
struct Conv2dView {
  explicit Conv2dView(const Problem& problem) : layer(conv1d_as_conv2d(*problem.layer)) {
    view.layer = &layer;
    for (const TensorDesc& desc : problem.in) view.in.push_back(as_image(desc));
    view.outs = as_image(problem.out());
    view.threads = problem.threads;
  }
  Conv2dView(const Conv2dView&) = delete;
  Conv2dView& operator=(const Conv2dView&) = delete;

  Layer layer;
  Problem view;

 private:
  static TensorDesc as_image(TensorDesc desc) {
    desc.shape = with_height_one(desc.shape);
    return desc;
  }
};

TensorView as_2d(const TensorView& view) {
  TensorView image = view;
  image.shape = with_height_one(view.shape);
  image.strides[3] = view.strides[2];
  image.strides[2] = view.strides[2] * view.shape[2];
  return image;
}

class PreparedThroughConv2d final : public Prepared {
 public:
  PreparedThroughConv2d(std::unique_ptr<const Prepared> inner, size_t inputs)
      : inner_(std::move(inner)), inputs_(inputs) {}

  WorkspaceSize workspace() const override { return inner_->workspace(); }
  bool works_on_residual() const override { return inner_->works_on_residual(); }

  void run(const RunArgs& args) const override {
    TensorView in[2];  // the input and perhaps a residual
    for (size_t i = 0; i < inputs_; ++i) in[i] = as_2d(args.in[i]);
    const TensorView out = as_2d(args.out);
    inner_->run({in, &out, args.workspace, args.parallel_for});
  }

 private:
  std::unique_ptr<const Prepared> inner_;
  size_t inputs_;
};

RoutineInfo conv1d_info(RoutineInfo info) {
  info.layer_type = "conv1d";
  return info;
}

class ThroughConv2d final : public Routine {
 public:
  explicit ThroughConv2d(std::unique_ptr<const Routine> inner)
      : Routine(conv1d_info(inner->info())), inner_(std::move(inner)) {}

  std::string source_hash() const override { return content_hash(Routine::source_hash() + inner_->source_hash()); }
  Schema input_schema(const Problem& problem, int input) const override {
    return inner_->input_schema(Conv2dView(problem).view, input);
  }
  Refusal check(const Problem& problem) const override { return inner_->check(Conv2dView(problem).view); }
  bool promising(const Problem& problem) const override { return inner_->promising(Conv2dView(problem).view); }
  std::vector<std::string> param_names() const override { return inner_->param_names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    return inner_->tunings(Conv2dView(problem).view);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return inner_->packing(Conv2dView(problem).view, tuning);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    inner_->pack(Conv2dView(problem).view, tuning, to);
  }
  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return inner_->expected_error(Conv2dView(problem).view, tuning);
  }
  std::string pack_key(const Problem& problem, const Tuning& tuning) const override {
    return inner_->pack_key(Conv2dView(problem).view, tuning);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedThroughConv2d>(inner_->prepare(Conv2dView(problem).view, tuning, std::move(packed)),
                                                   problem.in.size());
  }

 private:
  std::unique_ptr<const Routine> inner_;
};

}  // namespace

void conv1d_through_conv2d(RoutineList& list) {
  RoutineList inner;
  conv2d_layer().add_routines(inner);
  for (auto& routine : inner.take()) {
    // A wrapper would hide the parts, which the tuner measures.
    if (dynamic_cast<const ChildnetRoutine*>(routine.get()) != nullptr) continue;
    // These are for images, or for kernels with rows and columns, only.
    if (routine->info().in.layout.is_tiled() || routine->info().algorithm == "winograd_int16") continue;
    list.add<ThroughConv2d>(std::move(routine));
  }
}

}  // namespace softneuro
