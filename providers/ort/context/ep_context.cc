#include "providers/ort/context/ep_context.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/arena.h"
#include "base/version.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/ep.h"
#include "providers/ort/graph/read_graph.h"

namespace softneuro::ort {
namespace {

namespace fs = std::filesystem;
using AttributeOwner = Owned<OrtOpAttr, fn::ReleaseOpAttr>;

AttributeOwner attribute(const char* name, const std::string& text) {
  return create<fn::ReleaseOpAttr, OrtOpAttr>(fn::CreateOpAttr, name, text.data(), static_cast<int>(text.size()),
                                              static_cast<int>(attr_string));
}

AttributeOwner attribute(const char* name, int64_t number) {
  return create<fn::ReleaseOpAttr, OrtOpAttr>(fn::CreateOpAttr, name, &number, 1, static_cast<int>(attr_int));
}

// The model that the runtime writes: beside the original where no path was given.
fs::path written_model(const std::string& model_path, const ContextSettings& settings) {
  if (!settings.path.empty()) return settings.path;
  if (model_path.empty()) {
    throw Error("the model has no path to put its payload beside", {},
                "set ep.context_file_path, or ep.context_embed_mode to 1");
  }
  fs::path path = model_path;
  return path.replace_filename(path.stem().string() + "_ctx.onnx");
}

// Whole or not at all: another process may be reading the file.
void write_file(const fs::path& path, const std::string& payload) {
  const fs::path draft = path.string() + "." + std::to_string(::getpid());
  std::ofstream file(draft, std::ios::binary);
  file.write(payload.data(), static_cast<std::streamsize>(payload.size()));
  file.close();
  std::error_code failed;
  if (file) fs::rename(draft, path, failed);
  if (file && !failed) return;
  fs::remove(draft, failed);
  throw Error("the payload of a compiled model cannot be written", path.string());
}

struct Memory {
  std::shared_ptr<const std::byte> data;
  size_t bytes = 0;
};

Memory owned(AlignedBuffer buffer) {
  auto owner = std::make_shared<AlignedBuffer>(std::move(buffer));
  const auto* data = static_cast<const std::byte*>(owner->data());
  return {std::shared_ptr<const std::byte>(owner, data), owner->size()};
}

// Mapped, so that processes share the weights, of which most are read once. write_file() never changes a file in place.
Memory map_file(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  void* mapped = MAP_FAILED;
  if (file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    mapped = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  }
  if (file >= 0) ::close(file);
  if (mapped == MAP_FAILED) {
    throw Error("the payload of a compiled model cannot be read", path.string(), "keep it beside the model");
  }
  const auto bytes = static_cast<size_t>(status.st_size);
  return {std::shared_ptr<const std::byte>(
              static_cast<const std::byte*>(mapped),
              [bytes](const std::byte* data) { ::munmap(const_cast<std::byte*>(data), bytes); }),
          bytes};
}

// Beside the model and nowhere else: a model from elsewhere must not make us read other files.
fs::path payload_path(const std::string& name, const std::string& model_path, const ContextSettings& settings) {
  const fs::path relative = name;
  if (relative.empty() || relative != relative.filename() || name == "." || name == "..") {
    throw Error("the payload's name is not one of a file beside the model", name);
  }
  const fs::path model = model_path.empty() ? settings.path : model_path;
  if (model.empty()) {
    throw Error("the model has no path, so its payload '" + name + "' cannot be found", {},
                "load the model from its file, or set ep.context_file_path");
  }
  return fs::path(model).replace_filename(name);
}

}  // namespace

ContextSettings read_context_settings(const std::map<std::string, std::string>& entries) {
  const auto text = [&](const char* key) {
    const auto found = entries.find(key);
    return found == entries.end() ? std::string() : found->second;
  };
  ContextSettings settings;
  settings.write = text("ep.context_enable") == "1";
  settings.embed = text("ep.context_embed_mode") == "1";
  settings.packed = text("softneuro.context_packed") != "0";
  settings.path = text("ep.context_file_path");
  settings.prefix = text("ep.context_node_name_prefix");
  return settings;
}

bool is_context_node(const HostNode& node) {
  return node.op == "EPContext" && node.domain == "com.microsoft" && node.text("source", "") == provider_name;
}

OrtNode* make_context_node(SavedRegion region, const OrtNode* fused, const std::string& model_path, int number,
                           const ContextSettings& settings, const std::vector<std::string>& more) {
  if (!settings.packed) region.packings.clear();
  const std::string payload = write_payload(region), device = region.device;
  std::string held = payload;
  if (!settings.embed) {
    const fs::path model = written_model(model_path, settings);
    held = model.stem().string() + "_softneuro_" + std::to_string(number) + ".bin";
    write_file(fs::path(model).replace_filename(held), payload);
  }
  const std::string name = get<const char*>(fn::Node_GetName, fused);  // by which the runtime finds its node
  const std::string partition = settings.prefix + "softneuro_" + std::to_string(number);
  std::vector<AttributeOwner> owners;
  owners.push_back(attribute("main_context", 1));
  owners.push_back(attribute("embed_mode", settings.embed ? 1 : 0));
  owners.push_back(attribute(payload_attribute, held));
  owners.push_back(attribute("source", std::string(provider_name)));
  owners.push_back(attribute("ep_sdk_version", std::string(library_version())));
  owners.push_back(attribute("partition_name", partition));
  std::vector<OrtOpAttr*> attributes;
  for (const AttributeOwner& owner : owners) attributes.push_back(owner.get());
  auto inputs = node_values(fused, false);
  const auto outputs = node_values(fused, true);
  inputs.insert(inputs.end(), more.begin(), more.end());
  std::vector<const char*> in, out;
  for (const std::string& input : inputs) in.push_back(input.c_str());
  for (const std::string& output : outputs) out.push_back(output.c_str());
  auto node = create<fn::ReleaseNode, OrtNode>(fn::CreateNode, "EPContext", "com.microsoft", name.c_str(), in.data(),
                                               in.size(), out.data(), out.size(), attributes.data(), attributes.size());
  for (AttributeOwner& owner : owners) owner.release();  // the node has them now
  return node.release();
}

SavedRegion read_context_node(const HostGraph& graph, const ContextSettings& settings) {
  const HostNode& node = graph.nodes.at(0);
  Memory held = owned(read_bytes(static_cast<const OrtNode*>(node.host), payload_attribute));
  std::string where = "EPContext '" + node.name + "'";
  try {
    if (node.integer("embed_mode", 1) != 1) {
      const auto* text = reinterpret_cast<const char*>(held.data.get());
      const std::string name(text, held.bytes == 0 ? 0 : strnlen(text, held.bytes));
      const fs::path path = payload_path(name, graph.model_path, settings);
      where = path.string();
      held = map_file(path);
    }
    SavedRegion region = read_payload(held.data, held.bytes);
    const auto check = [](const std::vector<int64_t>& places, const std::vector<int>& ids) {
      for (const int64_t place : places) {
        if (place >= static_cast<int64_t>(ids.size()) || ids[static_cast<size_t>(place)] < 0) {
          throw Error("the saved region belongs to another node");
        }
      }
    };
    check(region.inputs, node.inputs), check(region.outputs, node.outputs);
    return region;
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.what(), where);
  }
}

}  // namespace softneuro::ort
