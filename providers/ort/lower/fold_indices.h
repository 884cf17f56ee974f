// Ops that pick elements by indices, where both are known ahead: see fold.h.
#pragma once

namespace softneuro::ort {

class Lowering;

void fold_gather(Lowering& low);
void fold_gather_elements(Lowering& low);
void fold_gather_nd(Lowering& low);

}  // namespace softneuro::ort
