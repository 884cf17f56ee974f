// What the runtime gets when it loads the library: the maker of providers.
#pragma once

#include "providers/ort/abi/abi.h"

namespace softneuro::ort {

OrtEpFactory* make_factory(const OrtLogger* logger);
void release_factory(OrtEpFactory* factory);
// Option `verbose`: 1 and more show messages that the runtime's own log leaves out, on standard error.
void show_messages(int verbose);

}  // namespace softneuro::ort
