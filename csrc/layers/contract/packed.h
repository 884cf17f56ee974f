// Packed weights: one block of memory, in sections that are declared before anything is packed. What memory they take,
// what is shared, and what is saved and taken back follows from the declaration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace softneuro {

class Packing {
 public:
  struct Section {
    std::string name;  // "weights", "bias", "scales", ...; a part's have the part's name and a dot in front
    DType dtype = DType::float32;
    int64_t count = 0;   // elements
    int64_t values = 0;  // as many of them are the layer's own, the others pad it to what kernels read
    size_t offset = 0;   // bytes before it: whole lines

    size_t bytes() const { return dtype_bytes(dtype, count); }
  };

  // Adds a section. values: all, if it is not said. Throws Error for a name that is taken.
  Packing& add(std::string name, int64_t count, DType dtype = DType::float32, int64_t values = -1);
  // Adds those of a part: a childnet's layer, a stage.
  Packing& add(const std::string& part, const Packing& other);

  bool empty() const { return sections_.empty(); }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(std::string_view name) const;
  // A part's sections as it declared them.
  Packing part(std::string_view name) const;
  // Size of the memory.
  size_t bytes() const;
  // Without what pads, which would keep the smallest models from their best routines: what max_memory counts.
  size_t value_bytes() const;
  // Names, types and counts: equal for packings that hold the same in the same places.
  std::string str() const;

 private:
  std::vector<Section> sections_;
};

// A packing's memory. Packed once, then immutable and shared between the nets of a model's shapes.
class Packed final {
 public:
  // Contents are undefined but for the bytes between sections, which are zero.
  explicit Packed(Packing packing);
  // In memory that is there already, at least as large.
  Packed(Packing packing, std::shared_ptr<std::byte> memory)
      : packing_(std::move(packing)), memory_(std::move(memory)) {}

  const Packing& packing() const { return packing_; }
  size_t bytes() const { return packing_.bytes(); }
  // The memory of all sections, aligned as an AlignedBuffer's.
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }

  // A section. Throws Error if there is none of that name, or if it has elements of another type.
  template <typename T>
  T* at(std::string_view name) {
    return reinterpret_cast<T*>(memory_.get() + offset(name, dtype_of<T>));
  }
  template <typename T>
  const T* at(std::string_view name) const {
    return reinterpret_cast<const T*>(memory_.get() + offset(name, dtype_of<T>));
  }
  // Null if there is none.
  template <typename T>
  const T* find(std::string_view name) const {
    return packing_.find(name) == nullptr ? nullptr : at<T>(name);
  }

  // Whatever its type, for a kernel that takes what its own packing made.
  const void* section(std::string_view name) const;

  // A part, in the same memory; of no sections if it has none.
  Packed part(std::string_view name);

 private:
  const Packing::Section& found(std::string_view name) const;
  size_t offset(std::string_view name, DType dtype) const;

  Packing packing_;
  std::shared_ptr<std::byte> memory_;
};

// A part, in the same memory, which keeps the whole alive: it is shared for as long. Null if there is none.
std::shared_ptr<const Packed> part_of(const std::shared_ptr<const Packed>& packed, std::string_view name);

// Null if there is no packing, or no such section.
template <typename T>
const T* find_packed(const std::shared_ptr<const Packed>& packed, std::string_view name) {
  return packed == nullptr ? nullptr : packed->find<T>(name);
}

struct Layer;
class ConstantData;

// The layer's "bias", if it has one, as a section of `count` floats.
void add_bias(Packing& packing, const Layer& layer, int64_t count);
void pack_bias(const Layer& layer, Packed& to);
// A constant (null: none) as a section of `count` floats: its own, and zeros behind them.
void add_padded(Packing& packing, std::string section, const std::shared_ptr<const ConstantData>* constant,
                int64_t count);
void pack_padded(const std::shared_ptr<const ConstantData>* constant, Packed& to, std::string_view section);

}  // namespace softneuro
