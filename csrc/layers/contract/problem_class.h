// Everything of a problem that decides which routines accept it and how long they take.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/contract/layer.h"

namespace softneuro {

// A childnet's part makes no use of zeros: finding them would mean to compute its weights.
enum class Patterns : unsigned char { found, ignored };

// The problem that stands for all of its class. A class has the layer's type, attributes and post-ops, extents, kinds
// and quantization of all blobs and weights, which blobs share a grid, and the traits of weights as classes. It has no
// weights' values, scales or names: whatever check() depends on of these has to be a trait. Asking a weight of it for
// values throws Error.
class PlainProblem {
 public:
  explicit PlainProblem(const Problem& problem, Patterns patterns = Patterns::found);

  const Problem& problem() const { return problem_; }

 private:
  std::shared_ptr<const Layer> layer_;
  Problem problem_;
};

// The class as text. Problems of one class have the same candidates, and the same times under the same conditions.
class ProblemClass {
 public:
  explicit ProblemClass(const Problem& problem, Patterns patterns = Patterns::found);

  const Problem& problem() const { return plain_.problem(); }
  // The key of candidates, and of times of what makes use of zeros in weights.
  const std::string& str() const { return text_; }
  // The key of all other times: weights with zeros and without have it in common.
  const std::string& dense() const { return dense_; }
  // Without extents, and zeros to a tenth: problems that differ in size alone tell about each other.
  const std::string& kind() const { return kind_; }
  // Logarithms (base 2) of numbers of elements: output, first input, weights.
  const std::vector<double>& sizes() const { return sizes_; }

 private:
  PlainProblem plain_;
  std::string text_, dense_, kind_;
  std::vector<double> sizes_;
};

}  // namespace softneuro
