#include "kernels/conv_depthwise_int8/conv_depthwise_int8.h"

#include <cstring>

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvDepthwiseInt8Kernels, conv_depthwise_int8, SN_DOT_LEVELS)
const ConvDepthwiseInt8Kernels* conv_depthwise_int8_kernels(Isa isa) {
  return find_kernels(conv_depthwise_int8_list, isa);
}

namespace {

int row_groups(int kh) { return (kh + 3) / 4; }
int blocks_of(int channels, int block) { return (channels + block - 1) / block; }

}  // namespace

size_t conv_depthwise_int8_packed_bytes(int channels, int kh, int kw, int block) {
  return static_cast<size_t>(blocks_of(channels, block)) * static_cast<size_t>(row_groups(kh) * kw * block * 4);
}

int conv_depthwise_int8_channel_at(int place, int block) {
  const int lanes = block / 4, quad = place % block / lanes, lane = place % lanes;
  return place / block * block + lane / 4 * 16 + quad * 4 + lane % 4;
}

// [block][group of four rows][kx][place][row of the group]
void conv_depthwise_int8_pack(int channels, int kh, int kw, int block, const int8_t* weights, int8_t* packed) {
  std::memset(packed, 0, conv_depthwise_int8_packed_bytes(channels, kh, kw, block));
  const int groups = row_groups(kh);
  for (int place = 0; place < blocks_of(channels, block) * block; ++place) {
    const int channel = conv_depthwise_int8_channel_at(place, block);
    if (channel >= channels) continue;
    for (int ky = 0; ky < kh; ++ky) {
      for (int kx = 0; kx < kw; ++kx) {
        const int vector = (place / block * groups + ky / 4) * kw + kx;
        packed[(vector * block + place % block) * 4 + ky % 4] = weights[(channel * kh + ky) * kw + kx];
      }
    }
  }
}

}  // namespace softneuro
