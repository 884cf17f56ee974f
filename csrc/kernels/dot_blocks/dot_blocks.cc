#include "kernels/dot_blocks/dot_blocks.h"

#include "kernels/dot_blocks/layout.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(DotBlocksKernels, dot_blocks, SN_VECTOR_LEVELS)
const DotBlocksKernels* dot_blocks_kernels(Isa isa) { return find_kernels(dot_blocks_list, isa); }

size_t dot_blocks_packed_size(const DotBlocks& p, int lanes) {
  return static_cast<size_t>(dot_blocks_panels(p.n, lanes)) * dot_blocks_panel_size(p, lanes);
}

}  // namespace softneuro
