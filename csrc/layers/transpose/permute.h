// Permutation of the dimensions of a row-major array: what transpose and pixel_shuffle routines share.
#pragma once

#include <span>
#include <vector>

#include "kernels/transpose2d/transpose2d.h"
#include "layers/contract/routine.h"

namespace softneuro {

class Permutation {
 public:
  // Output dimension i is input dimension perm[i]. Dimension 0 of either side is the blob's axis 0, whose stride is
  // only known when run.
  Permutation(std::span<const int64_t> dims, std::span<const int> perm, Isa isa, int threads);

  // Permutes floats or bytes.
  void run(const TensorView& src, const TensorView& dst, const ParallelFor& parallel_for) const;

 private:
  struct Dim {
    int64_t size, src_stride, dst_stride;
    bool src_batch, dst_batch;
  };
  // How the innermost work is done: dimensions contiguous in the output and in the input swapped, or runs copied.
  enum class Inner { transpose, runs };

  Transpose2dKernel kernel_;
  int threads_;
  std::vector<Dim> outer_;
  Inner inner_ = Inner::runs;
  Dim row_{1, 0, 0, false, false};  // transpose: contiguous in the output; runs: from run to run
  Dim col_{1, 0, 0, false, false};  // transpose: contiguous in the input
  int64_t run_ = 1;                 // length of a run
  int64_t elements_ = 1;
};

}  // namespace softneuro
