#include "layers/contract/packed.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "base/lines.h"
#include "layers/contract/layer.h"

namespace softneuro {
namespace {

static_assert(line_bytes == AlignedBuffer::alignment);

// Whether a section belongs to the part.
bool is_of(const Packing::Section& section, std::string_view part) {
  return section.name.size() > part.size() && section.name[part.size()] == '.' && section.name.starts_with(part);
}

}  // namespace

Packing& Packing::add(std::string name, int64_t count, DType dtype, int64_t values) {
  if (find(name) != nullptr) throw Error("a packing has two sections '" + name + "'");
  const size_t offset = round_to_line(bytes());
  sections_.push_back({std::move(name), dtype, count, values < 0 ? count : std::min(values, count), offset});
  return *this;
}

Packing& Packing::add(const std::string& part, const Packing& other) {
  for (const Section& section : other.sections_) {
    add(part + "." + section.name, section.count, section.dtype, section.values);
  }
  return *this;
}

const Packing::Section* Packing::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Packing Packing::part(std::string_view name) const {
  Packing found;
  for (const Section& section : sections_) {
    if (is_of(section, name)) {
      found.add(section.name.substr(name.size() + 1), section.count, section.dtype, section.values);
    }
  }
  return found;
}

size_t Packing::bytes() const { return sections_.empty() ? 0 : sections_.back().offset + sections_.back().bytes(); }

size_t Packing::value_bytes() const {
  size_t sum = 0;
  for (const Section& section : sections_) sum += dtype_bytes(section.dtype, section.values);
  return sum;
}

std::string Packing::str() const {
  std::string text;
  for (const Section& section : sections_) {
    text += (text.empty() ? "" : " ") + section.name + ":" + std::string(dtype_name(section.dtype)) + ":" +
            std::to_string(section.count);
  }
  return text;
}

Packed::Packed(Packing packing) : packing_(std::move(packing)) {
  const auto held = std::make_shared<AlignedBuffer>(packing_.bytes());
  memory_ = {held, static_cast<std::byte*>(held->data())};
  // What is saved should not depend on what was there before.
  size_t end = 0;
  for (const Packing::Section& section : packing_.sections()) {
    std::fill(memory_.get() + end, memory_.get() + section.offset, std::byte{0});
    end = section.offset + section.bytes();
  }
}

const Packing::Section& Packed::found(std::string_view name) const {
  if (const Packing::Section* section = packing_.find(name)) return *section;
  throw Error("a packing has no section '" + std::string(name) + "'", {}, "it has " + packing_.str());
}

size_t Packed::offset(std::string_view name, DType dtype) const {
  const Packing::Section& section = found(name);
  if (section.dtype == dtype) return section.offset;
  throw Error("section '" + std::string(name) + "' of a packing holds " + std::string(dtype_name(section.dtype)) +
              ", not " + std::string(dtype_name(dtype)));
}

const void* Packed::section(std::string_view name) const { return memory_.get() + found(name).offset; }

// Sections are in whole lines, so that a part's lie to each other as it declared them.
Packed Packed::part(std::string_view name) {
  const auto first = std::find_if(packing_.sections().begin(), packing_.sections().end(),
                                  [&](const Packing::Section& s) { return is_of(s, name); });
  if (first == packing_.sections().end()) return Packed({}, nullptr);
  return {packing_.part(name), {memory_, memory_.get() + first->offset}};
}

std::shared_ptr<const Packed> part_of(const std::shared_ptr<const Packed>& packed, std::string_view name) {
  if (packed == nullptr) return nullptr;
  using Held = std::pair<std::shared_ptr<const Packed>, const Packed>;
  const auto held = std::make_shared<Held>(packed, Packed(*packed).part(name));
  return held->second.packing().empty() ? nullptr : std::shared_ptr<const Packed>(held, &held->second);
}

void add_bias(Packing& packing, const Layer& layer, int64_t count) {
  if (const Constant* bias = layer.find_weight("bias")) add_padded(packing, "bias", bias, count);
}

void pack_bias(const Layer& layer, Packed& to) {
  if (const Constant* bias = layer.find_weight("bias")) pack_padded(bias, to, "bias");
}

void add_padded(Packing& packing, std::string section, const Constant* constant, int64_t count) {
  packing.add(std::move(section), count, DType::float32, constant == nullptr ? 0 : (*constant)->elements());
}

void pack_padded(const Constant* constant, Packed& to, std::string_view section) {
  auto* floats = to.at<float>(section);
  const int64_t count = to.packing().find(section)->count, own = constant == nullptr ? 0 : (*constant)->elements();
  if (own > 0) std::copy_n((*constant)->values().get(), own, floats);
  std::fill_n(floats + own, count - own, 0.0f);
}

}  // namespace softneuro
