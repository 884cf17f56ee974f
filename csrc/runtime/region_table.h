// Regions by name, so that a host's op finds its region without the language that prepared it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/fork_mutex.h"
#include "runtime/region.h"

namespace softneuro {

// Process-wide. A name is a hash of the region's content, never a number handed out at run time: hosts cache compiled
// code on disk, and such code must not find another region in the next process.
class RegionTable {
 public:
  static RegionTable& global();

  void add(const std::string& name, std::shared_ptr<Region> region);
  // Null if there is none.
  std::shared_ptr<Region> find(std::string_view name) const;
  void drop(std::string_view name);

 private:
  mutable ForkMutex mutex_;
  std::map<std::string, std::shared_ptr<Region>, std::less<>> regions_;
};

// Nets of single layers that hosts call eagerly, whatever region they are in.
NetCache& layer_nets();

// Whether the thread's last quick look at a region has found that the host is to run the call.
void set_left_to_host(bool left);
bool left_to_host();

// Text of an error that passes through a host's C interface, which keeps none. One per thread; taking clears it.
void set_region_error(std::string text);
std::string take_region_error();

}  // namespace softneuro
