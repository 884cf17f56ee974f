#include "kernels/store/store.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(StoreKernels, store, SN_ALL_LEVELS)
const StoreKernels* store_kernels(Isa isa) { return find_kernels(store_list, isa); }

}  // namespace softneuro
