#include "providers/ort/custom_ops.h"

#include "base/error.h"

namespace softneuro::ort {

void register_custom_ops(OrtSessionOptions*) { throw Error("this version has no custom ops"); }

}  // namespace softneuro::ort
