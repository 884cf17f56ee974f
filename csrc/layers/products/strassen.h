// Strassen's matrix product on the gemm kernels: row-major matrices, b packed beforehand.
//
// Winograd's form of it, 7 products of quarters for 8 (Strassen, "Gaussian elimination is not optimal", 1969; the form
// with 15 additions: Winograd, 1971), to any depth. Sums of b's quarters are made when it is packed. The rows of a and
// dst are taken in strips: sums of a's quarters live in a buffer of a strip's size, and most additions to dst are made
// by the kernel's own write-back, with quarters of dst as the intermediate results, so that nothing of a matrix's size
// is stored. Rows, columns and products that do not divide by 2^depth are computed apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activate/activate.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gemm/gemm.h"

namespace softneuro {

struct StrassenShape {
  int64_t m = 0, n = 0, k = 0;
  int depth = 1;  // levels of recursion
};

// Relative L2 error to expect on data without structure.
double strassen_error(const StrassenShape& shape);

// Floats of the packed matrix b, and the packing itself, from b transposed: [n][k].
size_t strassen_packed_size(const GemmKernels& kernels, const StrassenShape& shape);
void strassen_pack(const GemmKernels& kernels, const StrassenShape& shape, int panel, const float* weight,
                   float* packed);

struct StrassenArgs {
  const float* a = nullptr;  // [m][k]
  ptrdiff_t a_stride = 0;    // floats from row to row, here and below
  float* dst = nullptr;      // [m][n]
  ptrdiff_t dst_stride = 0;
  const float* bias = nullptr;      // n floats; null: none
  const float* residual = nullptr;  // null: none
  ptrdiff_t residual_stride = 0;
};

class StrassenGemm {
 public:
  StrassenGemm(Isa isa, const StrassenShape& shape, int panel, const float* packed, const Activation& activation,
               int threads);
  int tasks() const { return tasks_; }
  // Bytes of scratch of a task, a multiple of 64.
  size_t scratch_bytes() const { return scratch_; }
  // One task's share of the rows; scratch is 64-byte aligned.
  void run(const StrassenArgs& args, int64_t task, std::byte* scratch) const;

 private:
  struct Product;
  void multiply(const Product& product, const float* b, float* scratch) const;
  void leaf(const Product& product, const float* b, float* scratch) const;
  void finish(const StrassenArgs& args, int64_t row, int64_t rows, float* scratch) const;
  size_t level_floats(int level, int64_t rows, int64_t n, int64_t k) const;

  const GemmKernels& kernels_;
  StrassenShape shape_;
  GemmTiling tiling_;
  Activation activation_;
  const float* packed_;
  size_t leaf_;  // floats of a packed product
  ElementwiseKernel add_, subtract_;
  ActivateKernel activate_;
  int tasks_ = 0;
  int64_t half_ = 0, strip_ = 0;  // rows of the upper half, and of it in a strip
  size_t scratch_ = 0;            // bytes
};

}  // namespace softneuro
