// Ops that pick elements by indices or put them in another order, where all is known ahead: see fold.h.
#pragma once

namespace softneuro::ort {

class Lowering;

void fold_gather(Lowering& low);
void fold_gather_elements(Lowering& low);
void fold_gather_nd(Lowering& low);
void fold_transpose(Lowering& low);

}  // namespace softneuro::ort
