// The execution provider of one session.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "providers/ort/abi/abi.h"
#include "providers/ort/context/ep_context.h"
#include "providers/ort/run/region.h"

namespace softneuro::ort {

inline constexpr char provider_name[] = "SoftNeuroExecutionProvider";
inline constexpr char option_prefix[] = "ep.softneuroexecutionprovider.";

// From a session's configuration. Throws Error for an option that does not exist or is out of range.
RegionSettings read_settings(const std::map<std::string, std::string>& entries);

OrtEp* make_ep(RegionSettings settings, ContextSettings context, const OrtSessionOptions* options);
void release_ep(OrtEp* ep);

}  // namespace softneuro::ort
