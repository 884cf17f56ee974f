// What the options `keep` and `fixed` leave of a graph's candidates, and of plans that were made without them.
#pragma once

#include <optional>
#include <string>

#include "tune/asked/pins.h"
#include "tune/measure/work.h"

namespace softneuro {

// Says of patterns that match no layer of the graph which names are nearest.
void warn_of_unmatched(const Graph& graph, const Pins& pins);

// Adds the routines that `fixed` asks for to the candidates of the layers' classes where other limits have left them
// out.
void add_asked(const Graph& graph, const TuneSettings& settings, Work& work, GraphCosts& costs);
// Leaves what the pins allow. A fusion that covers a layer has to keep to its form with all that it reads and writes.
// Throws Error, naming the layer, where nothing is left.
void leave_asked(const Graph& graph, const TuneSettings& settings, const Work& work, GraphCosts& costs);

// Why a plan is not as asked, naming a layer; nothing if it is.
std::optional<std::string> not_as_asked(const Graph& graph, const Assignment& plan, const TuneSettings& settings);

// What is asked of which layer, by index: equal for graphs that may share plans, whatever their layers' names.
std::string asked_text(const Graph& graph, const Pins& pins);

}  // namespace softneuro
