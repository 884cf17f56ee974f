// What layers need to be computed by products of bfloat16 tiles: their shape as a convolution, and the rest is shared.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "layers/products/bfloat16_cost.h"

namespace softneuro {

// What routines are made for: plain code, which is there to be tested on any machine, and AMX.
std::vector<Isa> bfloat16_isas();
// For float32 values that are made of so many parts each: the algorithm's name, and the relative L2 error to expect of
// sums of so many products.
const char* bfloat16_algorithm(int parts);
double bfloat16_error(int parts, Isa isa, int64_t products);

// Packed are the weights' parts, and a bias in any case.
class Bfloat16Routine : public Routine {
 public:
  // parts: of each float32; 2 has three products for one, 3 six.
  Bfloat16Routine(std::string layer_type, Isa isa, Schema schema, int parts);

  Refusal check(const Problem& problem) const final;
  bool promising(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return Bfloat16Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const final;
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  std::string pack_key(const Problem& problem, const Tuning& tuning) const final;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
  double expected_error(const Problem& problem, const Tuning& tuning) const final;

 protected:
  const ConvBfloat16Kernels& kernels() const { return *conv_bfloat16_kernels(info().isa); }

 private:
  // Why the layer is no such convolution, if so.
  virtual Refusal is_convolution(const Problem& problem) const = 0;
  // All but parts and panel. Only the axes may depend on the blobs' shapes.
  virtual ConvBfloat16Shape shape(const Problem& problem) const = 0;
  // How work is best dealt, as a guess.
  virtual int likely_split(const Problem& problem) const = 0;
  // args: all that does not depend on the blobs' addresses; they point into `packed`.
  virtual std::unique_ptr<const Prepared> prepare_tiles(const Problem& problem, const ConvBfloat16Args& args, int split,
                                                        std::shared_ptr<const Packed> packed) const = 0;

  int block() const { return kernels().block; }
  ConvBfloat16Shape sized(const Problem& problem, int panel) const;
  Bfloat16Params checked(const Tuning& tuning) const;

  int parts_;
};

// Adds routines of two parts and of three.
template <typename R>
void add_bfloat16_routines(RoutineList& list) {
  for (const int parts : {2, 3}) {
    for (const Isa isa : bfloat16_isas()) list.add<R>(isa, parts);
  }
}

}  // namespace softneuro
