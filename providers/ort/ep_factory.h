// What the runtime gets when it loads the library: the maker of providers.
#pragma once

#include "providers/ort/abi.h"

namespace softneuro::ort {

OrtEpFactory* make_factory(const OrtLogger* logger);
void release_factory(OrtEpFactory* factory);

}  // namespace softneuro::ort
