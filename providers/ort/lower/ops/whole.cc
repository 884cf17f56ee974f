// Integers and booleans: what masks and positions are made of, and what lies at given indices.
#include <algorithm>

#include "providers/ort/lower/numbers.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

bool is_whole(const HostValue& value) {
  const auto type = value.type.dtype();
  return type && (*type == DType::int64 || *type == DType::int32 || *type == DType::boolean);
}

// The input's values are reals, or integers and booleans that layers compute with.
Refusal computes(const OpView& view, size_t input) {
  const HostValue& value = view.input(input);
  const auto type = value.type.dtype();
  if ((type && is_real(*type)) || is_whole(value)) return {};
  return "its input " + std::to_string(input) + " is " + value.type.name();
}

Refusal check_cast(const OpView& view) {
  const ElementType to(static_cast<int>(view.node().integer("to", 0)));
  const bool whole =
      to == ElementType(DType::int64) || to == ElementType(DType::int32) || to == ElementType(DType::boolean);
  return is_real(to) || whole ? Refusal() : Refusal("it converts to " + to.name());
}

// Inside, reals of any type are float32 and only integers become something else.
void convert_cast(Lowering& low) {
  const int blob = low.blob(0);
  const ElementType to(static_cast<int>(low.node().integer("to", 0)));
  const bool real = low.desc(blob).kind == ValueKind::real;
  if (is_real(to)) return low.set(real ? blob : low.add("cast", {blob}));
  if (!real && natural_schema(low.desc(blob)).dtype == to.known()) return low.set(blob);
  low.set(low.add("cast", {blob}, {{"to", std::string(dtype_name(to.known()))}}));
}

Refusal check_expand(const OpView& view) { return known_from(view, 1); }

void convert_expand(Lowering& low) {
  const Shape in = low.shape(0), wanted(low.known(1).integers());
  Shape out;
  for (int rank = std::max(in.rank(), wanted.rank()), axis = 0; axis < rank; ++axis) {
    const int at = axis - (rank - in.rank()), bt = axis - (rank - wanted.rank());
    const int64_t own = at < 0 ? 1 : in[at], other = bt < 0 ? 1 : wanted[bt];
    out.push_back(own == 1 ? other : own);
  }
  low.set(out == in ? low.blob(0) : low.add("expand", {low.blob(0)}, {{"shape", to_list(out)}}));
}

// Whether known indices are one after the other: a slice.
bool in_a_row(const HostTensor& indices) {
  if (indices.dims.empty()) return true;
  if (indices.dims.size() != 1 || indices.elements() == 0) return false;
  const auto values = indices.integers();
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[0] + static_cast<int64_t>(i) || values[i] == 0) return false;
  }
  return true;
}

Refusal check_gather(const OpView& view) {
  const HostTensor* indices = view.constant(1);
  if (view.is_known(0) && view.is_known(1)) return "its operands are known";
  if (indices != nullptr && in_a_row(*indices)) return {};
  if (view.input(0).grid) return "its data has a scale";
  if (Refusal no = computes(view, 0); !no.accepted()) return no;
  return view.input(1).type == ElementType(DType::boolean) ? Refusal("its indices are bool") : computes(view, 1);
}

// One index of an axis, which disappears, or a run of indices.
void convert_run(Lowering& low, int64_t axis, const HostTensor& indices) {
  const Shape in = low.shape(0);
  const int64_t size = in[static_cast<int>(axis)];
  const auto values = indices.integers();
  const int64_t start = values[0] < 0 ? values[0] + size : values[0];
  const int blob = low.add("slice", {low.blob(0)},
                           {{"axis", axis}, {"start", start}, {"end", start + static_cast<int64_t>(values.size())}});
  if (!indices.dims.empty()) return low.set(blob);
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (i != axis) out.push_back(in[i]);
  }
  low.set(low.reshape(blob, out));
}

// Rows of a matrix that is constant stay where the model has them.
void convert_gather(Lowering& low) {
  const int64_t axis = low.axis(low.node().integer("axis", 0), low.rank(0));
  if (low.is_known(1) && in_a_row(low.known(1))) return convert_run(low, axis, low.known(1));
  if (low.is_known(0) && is_real(low.type(0)) && axis == 0 && low.rank(0) == 2) {
    return low.set(low.add("embedding", {low.blob(1)}, {{"from_end", int64_t{1}}}, {{"weight", low.weight(0)}}));
  }
  low.set(low.add("take", {low.blob(0), low.blob(1)}, {{"axis", axis}, {"from_end", int64_t{1}}}));
}

Refusal check_gather_elements(const OpView& view) {
  if (view.is_known(0) && view.is_known(1)) return "its operands are known";
  return computes(view, 0);
}
void convert_gather_elements(Lowering& low) {
  const int64_t axis = low.axis(low.node().integer("axis", 0), low.rank(0));
  low.set(low.add("gather", {low.blob(0), low.blob(1)}, {{"axis", axis}, {"from_end", int64_t{1}}}));
}

// Indices of leading axes together, which are known, or of the first one.
Refusal check_gather_nd(const OpView& view) {
  if (view.node().integer("batch_dims", 0) != 0) return "it gathers by batches";
  if (view.is_known(0) && view.is_known(1)) return "its operands are known";
  if (!view.is_known(1) && view.dim(1, -1) != 1) return "its indices of several axes are not constant";
  return computes(view, 0);
}

void convert_gather_nd(Lowering& low) {
  const Shape data = low.shape(0), indices = low.shape(1);
  if (indices.rank() == 0) throw Error("its indices are one number");
  const auto axes = static_cast<int>(indices[indices.rank() - 1]);
  if (axes > data.rank()) throw Error("its data has fewer axes than its indices");
  Shape places, joined{data.product(0, axes)}, out;
  for (int i = 0; i + 1 < indices.rank(); ++i) places.push_back(indices[i]), out.push_back(indices[i]);
  for (int i = axes; i < data.rank(); ++i) joined.push_back(data[i]), out.push_back(data[i]);
  const auto take = [&](int ids) {
    const int blob = low.reshape(low.blob(0), joined);
    return low.add("take", {blob, ids}, {{"axis", int64_t{0}}, {"from_end", int64_t{1}}});
  };
  if (!low.is_known(1)) return low.set(take(low.reshape(low.blob(1), places)));
  const std::vector<int64_t> given = low.known(1).integers();
  std::vector<int64_t> flat(static_cast<size_t>(places.elements()));
  bool in_order = places.elements() == joined[0];
  for (size_t i = 0; i < flat.size(); ++i) {
    for (int axis = 0; axis < axes; ++axis) {
      const int64_t index = given[i * static_cast<size_t>(axes) + static_cast<size_t>(axis)], size = data[axis];
      if (index < -size || index >= size) throw Error("index " + std::to_string(index) + " is beyond its axis");
      flat[i] = flat[i] * size + (index < 0 ? index + size : index);
    }
    in_order = in_order && flat[i] == static_cast<int64_t>(i);
  }
  if (in_order) return low.set(low.reshape(low.blob(0), out));
  low.set(take(low.blob_of(low.added_value(constant_of(tensor_of(to_list(places), flat))))));
}

// The host itself chooses no booleans.
Refusal check_where(const OpView& view) {
  return view.input(1).type == ElementType(DType::boolean) ? Refusal("its values are bool") : computes(view, 1);
}
void convert_where(Lowering& low) { low.set(low.add("where", {low.blob(0), low.blob(1), low.blob(2)})); }

// Opset 6 and earlier broadcast along an attribute's axis.
Refusal check_compare(const OpView& view) {
  if (view.node().since_version < 7) return "its broadcasting rule is older than opset 7";
  return computes(view, 0);
}
template <const char* function>
void convert_compare(Lowering& low) {
  low.set(low.add("compare", {low.blob(0), low.blob(1)}, {{"function", std::string(function)}}));
}
constexpr char eq[] = "eq", lt[] = "lt", le[] = "le", gt[] = "gt", ge[] = "ge";

void convert_isnan(Lowering& low) {
  low.set(low.add("compare", {low.blob(0), low.blob(0)}, {{"function", std::string("ne")}}));
}

template <const char* function>
void convert_logical(Lowering& low) {
  low.set(low.add("logical", {low.blob(0), low.blob(1)}, {{"function", std::string(function)}}));
}
constexpr char both[] = "and", either[] = "or", one_of[] = "xor";
void convert_not(Lowering& low) { low.set(low.add("logical", {low.blob(0)}, {{"function", std::string("not")}})); }

Refusal check_cumsum(const OpView& view) {
  if (Refusal no = computes(view, 0); !no.accepted()) return no;
  return known_from(view, 1);
}
void convert_cumsum(Lowering& low) {
  low.set(low.add("cumsum", {low.blob(0)},
                  {{"axis", low.axis(low.known(1).integers().at(0), low.rank(0))},
                   {"exclusive", low.node().integer("exclusive", 0)},
                   {"reverse", low.node().integer("reverse", 0)}}));
}

// NaN is as the host has it: comparisons with it say no. Halves have equal values where what they are inside a region
// has not.
Refusal check_arg(const OpView& view) {
  if (view.rank(0) == 0) return "its input is a scalar";
  if (is_real(view.input(0).type) && view.input(0).type != ElementType(DType::float32)) return "it compares halves";
  return computes(view, 0);
}
template <const char* function>
void convert_arg(Lowering& low) {
  low.set(low.add("arg_reduce", {low.blob(0)},
                  {{"function", std::string(function)},
                   {"axis", low.axis(low.node().integer("axis", 0), low.rank(0))},
                   {"keepdim", low.node().integer("keepdims", 1)},
                   {"last", low.node().integer("select_last_index", 0)},
                   {"nan", int64_t{0}}}));
}
constexpr char argmax[] = "argmax", argmin[] = "argmin";

constexpr OpEntry whole_entries[] = {
    {"Cast", check_cast, convert_cast, true, Holds::anything},
    {"Expand", check_expand, convert_expand, true, Holds::anything},
    {"Gather", check_gather, convert_gather, false, Holds::all},
    {"GatherElements", check_gather_elements, convert_gather_elements, false, Holds::anything},
    {"GatherND", check_gather_nd, convert_gather_nd, false, Holds::anything},
    {"IsNaN", accept, convert_isnan, false, Holds::anything},
    {"Where", check_where, convert_where, false, Holds::anything},
    {"Equal", check_compare, convert_compare<eq>, false, Holds::anything},
    {"Less", check_compare, convert_compare<lt>, false, Holds::anything},
    {"LessOrEqual", check_compare, convert_compare<le>, false, Holds::anything},
    {"Greater", check_compare, convert_compare<gt>, false, Holds::anything},
    {"GreaterOrEqual", check_compare, convert_compare<ge>, false, Holds::anything},
    {"And", accept, convert_logical<both>, false, Holds::anything},
    {"Or", accept, convert_logical<either>, false, Holds::anything},
    {"Xor", accept, convert_logical<one_of>, false, Holds::anything},
    {"Not", accept, convert_not, false, Holds::anything},
    {"ArgMax", check_arg, convert_arg<argmax>, true, Holds::anything},
    {"ArgMin", check_arg, convert_arg<argmin>, true, Holds::anything},
    {"CumSum", check_cumsum, convert_cumsum, false, Holds::anything},
};

}  // namespace

std::span<const OpEntry> whole_ops() { return whole_entries; }

}  // namespace softneuro::ort
