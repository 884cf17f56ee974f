// Layers as products of the bytes of a quantized blob with quantized weights: what routines on gemm_int8 share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/lines.h"
#include "kernels/gemm_int8/gemm_int8.h"
#include "layers/quantized/quantization.h"

namespace softneuro {

// The levels that there are kernels for, best first.
std::vector<Isa> int8_isas();

// Each group's outputs, and the products in one of them.
struct Int8Shape {
  int64_t groups = 1, n = 0, k = 0;

  int64_t outputs() const { return groups * n; }
  int padded() const { return static_cast<int>((n + GemmInt8::block - 1) / GemmInt8::block * GemmInt8::block); }
};

// Describes a routine on a blob of schema `in`, whose results go to another of its dtype or to floats, as a residual
// comes. sparse: it leaves groups of zeros out.
RoutineInfo int8_info(const char* layer_type, Isa isa, const Layout& layout, DType out, bool sparse = false);
// Whether inputs and outputs are quantized as kernels have them.
Refusal check_int8_blobs(const Problem& problem);
// And the weights, whose outputs are along `axis`, and no sum can overflow. zero_point: whether they may have one other
// than that of signed bytes, which Int8RowStarts then takes off.
Refusal check_int8(const Problem& problem, const Int8Shape& shape, int axis = 0, bool zero_point = false);

// What becomes of a kernel's sums, by output: what they start with, and how they are brought to steps of the output.
struct Int8Scales {
  std::vector<int32_t> start;
  std::vector<float> scale, bias;
};
// rows: the weights as [outputs][k].
Int8Scales int8_scales(const Problem& problem, const Int8Shape& shape, const int8_t* rows);

// Packs so many bytes of weights, and so many times as many starts as there are columns, which are padded outputs.
Packing int8_packing(const Int8Shape& shape, int64_t bytes, int64_t columns, int64_t starts = 1);
Packing int8_packing(const Int8Shape& shape);
// What a packing depends on beside the layer.
std::string int8_pack_key(const Problem& problem);
// Where weights are packed, and which of the starts of all outputs are theirs.
struct Int8Part {
  int8_t* weights;
  int64_t start;
};
// rows: the weights as [outputs][k]. All but whether they are narrow.
void pack_int8_part(const Problem& problem, const Int8Shape& shape, const int8_t* rows, const Int8Part& part,
                    Packed& to);
// Where a part is all.
void pack_int8(const Problem& problem, const Int8Shape& shape, const int8_t* rows, Packed& to);

// The same where the input is real, and signed bytes that it is brought to are moved up by so many. There are sums of
// each output's weights besides, `columns`.
Packing dynamic_int8_packing(const Int8Shape& shape);
void pack_dynamic_int8(const Problem& problem, const Int8Shape& shape, const int8_t* rows, int32_t moved_by,
                       Packed& to);
// The layer's weights as signed bytes, in their order.
std::shared_ptr<const int8_t> int8_weights(const Problem& problem);

// What the weights' zero point adds to the sums of each row.
class Int8RowStarts {
 public:
  Int8RowStarts(const Problem& problem, const Int8Shape& shape);
  // Bytes of scratch for so many rows.
  size_t bytes(int64_t rows) const { return zero_ == 0 ? 0 : round_to_line(static_cast<size_t>(rows) * 4); }
  // Completes a call that knows its rows.
  void set(GemmInt8& call, std::byte* scratch) const;

 private:
  int32_t zero_;
  int64_t k_;
  int32_t (*sum_)(const uint8_t* src, int64_t count);
};

// What a kernel does with sums, but for their scale and bias. residual: how it is stored.
Epilogue int8_epilogue(const Problem& problem, DType residual);
// Steps of the problem's output in one real, where sums are brought to steps; else 1. That which scales of sums count
// in: where the layer's own result is quantized first, it is steps of that.
double int8_unit(const Problem& problem);
double int8_sum_unit(const Problem& problem);
// Refuses what int8_epilogue does not have.
Refusal check_int8_post(const Problem& problem);

// The groups of each panel that have weights other than zero, and where each panel's begin.
struct Int8Lists {
  std::vector<int32_t> groups, starts;

  // rows: the weights as [outputs][k].
  Int8Lists(const Int8Shape& shape, const int8_t* rows);
  // Refuses those of weights with too few groups of zeros for leaving them out to pay.
  void add(Packing& packing) const;
  void pack(Packed& to) const;
};

// A kernel's arguments but for rows and addresses of blobs; they point into `packed`. residual: how it is stored.
GemmInt8 int8_gemm(const Problem& problem, const Int8Shape& shape, const Packed& packed, DType residual);
// Those of one of its groups.
GemmInt8 int8_group(const GemmInt8& gemm, const Int8Shape& shape, int64_t group);

}  // namespace softneuro
