#include "runtime/region_table.h"

#include <mutex>
#include <utility>

namespace softneuro {
namespace {

thread_local std::string region_error;
thread_local bool left = false;

}  // namespace

RegionTable& RegionTable::global() {
  static auto* table = new RegionTable;  // never destroyed: ops may run while the process ends
  return *table;
}

void RegionTable::add(const std::string& name, std::shared_ptr<Region> region) {
  const std::unique_lock lock(mutex_);
  regions_[name] = std::move(region);
}

std::shared_ptr<Region> RegionTable::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = regions_.find(name);
  return found == regions_.end() ? nullptr : found->second;
}

void RegionTable::drop(std::string_view name) {
  std::shared_ptr<Region> dropped;  // freed outside the lock
  const std::unique_lock lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  dropped = std::move(found->second);
  regions_.erase(found);
}

NetCache& layer_nets() {
  static auto* nets = new NetCache;
  return *nets;
}

void set_left_to_host(bool found) { left = found; }

bool left_to_host() { return left; }

void set_region_error(std::string text) { region_error = std::move(text); }

std::string take_region_error() { return std::exchange(region_error, {}); }

}  // namespace softneuro
