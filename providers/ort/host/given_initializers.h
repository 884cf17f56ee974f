// Initializers that the program gives (SessionOptions.add_initializer) in the place of the model's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "providers/ort/graph/host_graph.h"
#include "providers/ort/host/host_region.h"

namespace softneuro::ort {

// The runtime shows a provider the model's values and uses the program's. No function lists these. But options refuse
// to take a name twice, and a session with the same options whose model is nothing but initializers returns them.
class GivenInitializers {
 public:
  // Copies the options, which die after CreateEp. `may_read`: whether sessions may be made with them.
  GivenInitializers(const OrtSessionOptions* options, bool may_read);

  // Puts the program's values into the graph. The host keeps the nodes that read one which is not known or does not
  // fit.
  void put_into(HostGraph& graph);
  // The same for a graph that nobody else can run: throws Error. Returns whether any value is another one now.
  bool put_into_saved(HostGraph& graph);

 private:
  using Options = Owned<OrtSessionOptions, fn::ReleaseSessionOptions>;
  using Tensor = std::shared_ptr<const HostTensor>;  // null: not known

  // By value of the graph; those that its nodes read.
  std::map<int, Tensor> find(const HostGraph& graph);
  bool is_given(const std::string& name);
  void read(const HostGraph& graph, const std::vector<int>& ids);

  Options options_, asked_options_;  // the second ones have every name that was asked for
  ValueOwner stand_in_;              // their value for it
  bool may_read_;
  std::map<std::string, bool> asked_;  // by name: whether it is given
  std::map<std::string, Tensor> known_;
};

}  // namespace softneuro::ort
