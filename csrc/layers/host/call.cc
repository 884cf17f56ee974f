// The call of the host's function.
#include <memory>

#include "layers/contract/routine.h"
#include "layers/host/host.h"

namespace softneuro {
namespace {

class PreparedHostCall final : public Prepared {
 public:
  PreparedHostCall(std::shared_ptr<const HostOp> host, size_t inputs) : host_(std::move(host)), inputs_(inputs) {}

  bool on_caller() const override { return true; }
  void run(const RunArgs& args) const override {
    host_->run(std::span(args.in, inputs_), std::span(args.outs, host_->outs.size()));
  }

 private:
  std::shared_ptr<const HostOp> host_;
  size_t inputs_;
};

class HostCall final : public Routine {
 public:
  HostCall()
      : Routine({.layer_type = "host", .algorithm = "call", .isa_in_name = false, .in = f32_nchw, .out = f32_nchw}) {}

  Schema input_schema(const Problem& problem, int input) const override {
    const TensorDesc& desc = problem.in[static_cast<size_t>(input)];
    const Schema schema = host_schema(desc);
    const bool strided = problem.layer->host->strided && schema.dtype == DType::float32 && desc.shape.rank() >= 2;
    return strided ? schema.with(schema.layout.with_strides()) : schema;
  }
  Schema output_schema(const Problem& problem, int output) const override {
    return host_schema(problem.outs[static_cast<size_t>(output)]);
  }
  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("an op of the host absorbs nothing");
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedHostCall>(problem.layer->host, problem.in.size());
  }
};

}  // namespace

void host_call(RoutineList& list) { list.add<HostCall>(); }

}  // namespace softneuro
