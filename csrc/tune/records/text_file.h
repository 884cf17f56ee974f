// Reading and replacing the text files that tuning keeps beside a model: plans, ranges.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace softneuro {

constexpr size_t max_text_file = size_t{64} << 20;  // bytes

// `what` names the content in messages: "the plan". Throws Error if the file cannot be read.
std::string read_text_file(const std::string& path, const std::string& what);

// Replaces the file at once, never leaving half of it, by what `change` makes of its text, or of nothing where there is
// no file. Two processes that do so at once do it one after the other. Throws Error if the file cannot be replaced.
void change_text_file(const std::string& path, const std::string& what,
                      const std::function<std::string(const std::optional<std::string>& old)>& change);

}  // namespace softneuro
