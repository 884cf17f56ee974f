// A region on disk: what EPContext nodes carry. The host's ops with their weights; for the device that it was made on
// also the plans and the packed weights.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/net.h"
#include "providers/ort/graph/host_graph.h"
#include "tune/plan/plan.h"

namespace softneuro::ort {

// What a region knows of one signature of shapes.
struct SavedShape {
  std::vector<int64_t> signature;
  Plan plan;         // without steps if there is none
  std::string host;  // why the host runs it, or empty
};

struct SavedRegion {
  HostGraph ops;
  std::vector<int64_t> inputs, outputs;  // by the region's: place at the EPContext node
  std::string device;                    // device_identity() that the rest is for
  int64_t threads = 1;
  std::vector<SavedShape> shapes;
  std::vector<PackedCache::Item> packings;
};

// Names everything that plans and packings depend on: version, kernels, device.
std::string device_identity();

// Ends in a byte that is not zero. Ops' host pointers and paths are left out.
std::string write_payload(const SavedRegion& region);

// The weights share `memory`, which must be aligned as an AlignedBuffer; bytes after the payload's own end
// are ignored. Throws Error for anything that write_payload() did not write: what is read has been checked by a hash,
// and again by its structure, so that no file, however it was made, leads outside its memory.
SavedRegion read_payload(std::shared_ptr<const std::byte> memory, size_t bytes);

}  // namespace softneuro::ort
