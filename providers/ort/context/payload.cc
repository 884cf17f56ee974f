#include "providers/ort/context/payload.h"

#include <algorithm>
#include <cstring>

#include "base/arena.h"
#include "base/hash.h"
#include "base/version.h"
#include "providers/ort/partition/partition.h"
#include "tune/records/cost_keys.h"

namespace softneuro::ort {
namespace {

constexpr char magic[] = "SNREGION";
constexpr int64_t format = 3;
// magic, format, bytes in all, hash of what follows; then zeros until here
constexpr size_t head = 64, format_at = 8, size_at = 16, hash_at = 24, hash_size = 32;
constexpr char tail = '.';

class Writer {
 public:
  Writer() { text_.assign(head, '\0'); }

  void number(int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void text(const std::string& value) {
    number(static_cast<int64_t>(value.size()));
    text_ += value;
  }
  void memory(const void* data, size_t bytes) {
    number(static_cast<int64_t>(bytes));
    text_.append((AlignedBuffer::alignment - text_.size() % AlignedBuffer::alignment) % AlignedBuffer::alignment, '\0');
    if (bytes > 0) text_.append(static_cast<const char*>(data), bytes);
  }
  template <typename List, typename Each>
  void list(const List& values, Each each) {
    number(static_cast<int64_t>(values.size()));
    for (const auto& value : values) each(value);
  }
  template <typename T>
  void numbers(const std::vector<T>& values) {
    list(values, [&](const T& value) { number(static_cast<int64_t>(value)); });
  }
  void texts(const std::vector<std::string>& values) {
    list(values, [&](const std::string& value) { text(value); });
  }
  void tensor(const HostTensor& value) {
    number(ElementType(value.type).number());
    numbers(value.dims);
    memory(value.data.get(), value.bytes());
  }

  std::string finish() {
    text_ += tail;
    const auto size = static_cast<int64_t>(text_.size());
    std::memcpy(text_.data(), magic, format_at);
    std::memcpy(text_.data() + format_at, &format, sizeof(format));
    std::memcpy(text_.data() + size_at, &size, sizeof(size));
    const std::string hash = bytes_hash(text_.data() + head, text_.size() - head);
    std::memcpy(text_.data() + hash_at, hash.data(), hash_size);
    return std::move(text_);
  }

 private:
  std::string text_;
};

[[noreturn]] void damaged(const std::string& what) {
  throw Error("the saved region is damaged: " + what, {}, "make the model anew");
}

class Reader {
 public:
  Reader(std::shared_ptr<const std::byte> memory, size_t bytes) : memory_(std::move(memory)) {
    const auto* start = memory_.get();
    if (bytes < head || std::memcmp(start, magic, format_at) != 0) damaged("it does not begin as one");
    int64_t version = 0, size = 0;
    std::memcpy(&version, start + format_at, sizeof(version));
    std::memcpy(&size, start + size_at, sizeof(size));
    if (version != format) {
      throw Error(
          "the saved region has format " + std::to_string(version) + ", this version reads " + std::to_string(format),
          {}, "make the model anew");
    }
    if (size <= static_cast<int64_t>(head) || static_cast<uint64_t>(size) > bytes) damaged("it is cut short");
    end_ = static_cast<size_t>(size);
    if (std::memcmp(bytes_hash(start + head, end_ - head).data(), start + hash_at, hash_size) != 0) {
      damaged("its checksum is another");
    }
  }

  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof(value)), sizeof(value));
    return value;
  }
  int64_t number(int64_t least, int64_t most) {
    const int64_t value = number();
    if (value < least || value > most) damaged(std::to_string(value) + " is out of range");
    return value;
  }
  bool flag() { return number(0, 1) == 1; }
  std::string text() {
    const size_t size = count(1);
    return {reinterpret_cast<const char*>(take(size)), size};
  }
  std::shared_ptr<const std::byte> memory(size_t bytes) {
    if (count(1) != bytes) damaged("a tensor has another size than its shape");
    take((AlignedBuffer::alignment - at_ % AlignedBuffer::alignment) % AlignedBuffer::alignment);
    return {memory_, take(bytes)};
  }
  // `bytes`: that each element takes at least.
  template <typename Each>
  void list(size_t bytes, Each each) {
    for (size_t left = count(bytes); left > 0; --left) each();
  }
  std::vector<int64_t> numbers(int64_t least = INT64_MIN, int64_t most = INT64_MAX) {
    std::vector<int64_t> values;
    list(sizeof(int64_t), [&] { values.push_back(number(least, most)); });
    return values;
  }
  std::vector<int> ids(int64_t least, size_t values) {
    const auto wide = numbers(least, static_cast<int64_t>(values) - 1);
    return {wide.begin(), wide.end()};
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values;
    list(sizeof(int64_t), [&] { values.push_back(text()); });
    return values;
  }
  ElementType type() { return ElementType(static_cast<int>(number(0, 64))); }
  HostTensor tensor() {
    HostTensor value;
    const ElementType given = type();
    if (!given.dtype()) damaged("a constant of type " + given.name());
    value.type = *given.dtype();
    value.dims = numbers(0);
    int64_t bits = dtype_bits(value.type);
    for (const int64_t dim : value.dims) {
      if (__builtin_mul_overflow(bits, dim, &bits)) damaged("a tensor is too large");
    }
    value.data = memory(value.bytes());
    return value;
  }
  size_t left() const { return end_ - at_; }
  size_t count(size_t bytes) {
    return static_cast<size_t>(number(0, static_cast<int64_t>((end_ - at_ - sizeof(int64_t)) / bytes)));
  }

 private:
  const std::byte* take(size_t bytes) {
    if (bytes > end_ - at_) damaged("it ends too early");
    at_ += bytes;
    return memory_.get() + at_ - bytes;
  }

  std::shared_ptr<const std::byte> memory_;
  size_t at_ = head, end_ = head;
};

void write_attribute(Writer& to, const OpAttribute& attribute) {
  to.number(static_cast<int64_t>(attribute.index()));
  if (const auto* integer = std::get_if<int64_t>(&attribute)) to.number(*integer);
  if (const auto* real = std::get_if<float>(&attribute)) to.memory(real, sizeof(float));
  if (const auto* text = std::get_if<std::string>(&attribute)) to.text(*text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) to.numbers(*list);
  if (const auto* list = std::get_if<std::vector<float>>(&attribute)) {
    to.number(static_cast<int64_t>(list->size()));
    to.memory(list->data(), list->size() * sizeof(float));
  }
  if (const auto* tensor = std::get_if<HostTensor>(&attribute)) to.tensor(*tensor);
}

OpAttribute read_attribute(Reader& from) {
  const auto floats = [&](size_t count) {
    std::vector<float> values(count);
    const auto memory = from.memory(count * sizeof(float));
    if (count > 0) std::memcpy(values.data(), memory.get(), count * sizeof(float));
    return values;
  };
  switch (from.number(0, std::variant_size_v<OpAttribute> - 1)) {
    case 0:
      return from.number();
    case 1:
      return floats(1)[0];
    case 2:
      return from.text();
    case 3:
      return from.numbers();
    case 4:
      return floats(from.count(sizeof(float)));
    case 5:
      return from.tensor();
    default:
      return std::monostate();
  }
}

void write_ops(Writer& to, const HostGraph& ops) {
  to.text(ops.name);
  to.list(ops.opsets, [&](const auto& opset) { to.text(opset.first), to.number(opset.second); });
  to.list(ops.values, [&](const HostValue& value) {
    to.text(value.name), to.number(value.type.number()), to.number(value.has_shape);
    to.numbers(value.dims), to.texts(value.symbols), to.number(value.sized), to.number(value.constant != nullptr);
    if (value.constant) to.tensor(*value.constant);
  });
  to.numbers(ops.inputs), to.numbers(ops.outputs);
  to.list(ops.nodes, [&](const HostNode& node) {
    to.text(node.name), to.text(node.op), to.text(node.domain), to.number(node.since_version), to.number(node.is_step);
    to.numbers(node.inputs), to.numbers(node.outputs);
    to.list(node.attributes, [&](const auto& item) { to.text(item.first), write_attribute(to, item.second); });
  });
}

HostGraph read_ops(Reader& from) {
  HostGraph ops;
  ops.name = from.text();
  from.list(2 * sizeof(int64_t), [&] {
    const std::string domain = from.text();
    ops.opsets[domain] = static_cast<int>(from.number(0, 1000));
  });
  from.list(7 * sizeof(int64_t), [&] {
    HostValue& value = ops.values.emplace_back();
    value.name = from.text(), value.type = from.type(), value.has_shape = from.flag();
    value.dims = from.numbers(-1), value.symbols = from.texts(), value.sized = from.flag();
    if (from.flag()) value.constant = std::make_shared<const HostTensor>(from.tensor());
  });
  const size_t values = ops.values.size();
  ops.inputs = from.ids(0, values), ops.outputs = from.ids(0, values);
  from.list(8 * sizeof(int64_t), [&] {
    HostNode& node = ops.nodes.emplace_back();
    node.name = from.text(), node.op = from.text(), node.domain = from.text();
    node.since_version = static_cast<int>(from.number(0, 1000)), node.is_step = from.flag();
    node.inputs = from.ids(-1, values), node.outputs = from.ids(-1, values);
    from.list(2 * sizeof(int64_t), [&] {
      const std::string name = from.text();
      node.attributes[name] = read_attribute(from);
    });
  });
  return ops;
}

// What the runtime has made sure of when it gives a graph itself.
void check_ops(const HostGraph& ops) {
  std::vector<bool> known(ops.values.size());
  for (size_t id = 0; id < known.size(); ++id) known[id] = ops.values[id].constant != nullptr;
  for (const int id : ops.inputs) known[static_cast<size_t>(id)] = true;
  for (const HostNode& node : ops.nodes) {
    for (const int id : node.inputs) {
      if (id >= 0 && !known[static_cast<size_t>(id)]) damaged("node '" + node.name + "' comes before its input");
    }
    if (node.outputs.empty()) damaged("node '" + node.name + "' has no output");
    for (const int id : node.outputs) {
      if (id >= 0) known[static_cast<size_t>(id)] = true;
    }
  }
  for (const int id : ops.outputs) {
    if (!known[static_cast<size_t>(id)]) damaged("an output is never computed");
  }
  for (const auto& [index, reason] : refused_nodes(ops)) {
    const HostNode& node = ops.nodes[static_cast<size_t>(index)];
    throw Error("the saved region holds " + node.op + " '" + node.name +
                "', which this version does not take: " + reason);
  }
}

void write_packing(Writer& to, const Packing& packing) {
  to.list(packing.sections(), [&](const Packing::Section& section) {
    to.text(section.name), to.text(std::string(dtype_name(section.dtype)));
    to.number(section.count), to.number(section.values);
  });
}

DType read_dtype(Reader& from) {
  const std::string name = from.text();
  for (const DType dtype : all_dtypes()) {
    if (dtype_name(dtype) == name) return dtype;
  }
  damaged("a packing has elements of type '" + name + "'");
}

Packing read_packing(Reader& from) {
  Packing packing;
  from.list(4 * sizeof(int64_t), [&] {
    const std::string name = from.text();
    const DType dtype = read_dtype(from);
    const auto bits = static_cast<int64_t>(from.left() * 8);
    const int64_t count = from.number(0, bits / dtype_bits(dtype)), values = from.number(0, count);
    packing.add(name, count, dtype, values);
    if (packing.bytes() > from.left()) damaged("a packing is larger than all that follows");
  });
  return packing;
}

}  // namespace

std::string device_identity() {
  return std::string(library_version()) + " " + std::string(kernel_hash()) + " " + device_fingerprint();
}

std::string write_payload(const SavedRegion& region) {
  Writer to;
  write_ops(to, region.ops);
  to.numbers(region.inputs), to.numbers(region.outputs);
  to.text(region.device), to.number(region.threads);
  to.list(region.shapes, [&](const SavedShape& shape) {
    PlanFile file;
    if (!shape.plan.steps.empty()) file.set(shape.plan);
    to.numbers(shape.signature), to.text(file.format()), to.text(shape.host);
  });
  to.list(region.packings, [&](const PackedCache::Item& item) {
    to.text(item.key), write_packing(to, item.packed->packing());
    to.memory(item.packed->data(), item.packed->bytes());
  });
  return to.finish();
}

SavedRegion read_payload(std::shared_ptr<const std::byte> memory, size_t bytes) {
  Reader from(std::move(memory), bytes);
  SavedRegion region;
  region.ops = read_ops(from);
  check_ops(region.ops);
  region.inputs = from.numbers(0), region.outputs = from.numbers(0);
  if (region.inputs.size() != region.ops.inputs.size() || region.outputs.size() != region.ops.outputs.size()) {
    damaged("its inputs or outputs are not the node's");
  }
  region.device = from.text(), region.threads = from.number(1, 4096);
  from.list(3 * sizeof(int64_t), [&] {
    SavedShape& shape = region.shapes.emplace_back();
    shape.signature = from.numbers();
    const PlanFile file = PlanFile::parse(from.text(), "the saved region's plan");
    if (!file.plans().empty()) shape.plan = file.plans()[0];
    shape.host = from.text();
  });
  from.list(3 * sizeof(int64_t), [&] {
    PackedCache::Item& item = region.packings.emplace_back();
    item.key = from.text();
    // Into memory of its own: nets read it at every run, and want its large pages.
    const auto packed = std::make_shared<Packed>(read_packing(from));
    const auto held = from.memory(packed->bytes());
    if (packed->bytes() > 0) std::memcpy(packed->data(), held.get(), packed->bytes());
    item.packed = packed;
  });
  return region;
}

}  // namespace softneuro::ort
