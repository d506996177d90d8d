// Shapes, types, views and options between Python and C++.
#include "values.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cfenv>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "session/stream/describe_stream.h"

namespace sluice::python {
namespace {

constexpr const char* kDTypes[] = {
    "f64", "f32",  "f16",      "bf16", "f8e4m3",     "f8e5m2",    "i64",  "i32",
    "i8",  "u8",   "i16",      "u16",  "u32",        "u64",       "bool", "f8e8m0",
    "c64", "c128", "f4e2m1x2", "i4x2", "f8e4m3fnuz", "f8e5m2fnuz"};

TensorView OneViewOf(nb::handle view, const std::string& name) {
  if (!nb::isinstance<nb::tuple>(view) || nb::len(view) != 6) {
    throw nb::type_error(absl::StrCat("tensor \"", name,
                                      "\": a view is (ptr, shape, strides, dtype, device, ordinal)")
                             .c_str());
  }
  const nb::tuple fields = nb::borrow<nb::tuple>(view);
  TensorView made;
  uintptr_t address = 0;
  if (!nb::try_cast(fields[0], address) || !nb::try_cast(fields[5], made.device_ordinal)) {
    throw nb::type_error(
        absl::StrCat("tensor \"", name, "\": a view's ptr and ordinal are integers").c_str());
  }
  made.data = reinterpret_cast<void*>(address);
  made.shape = IntsOf(fields[1], "a view's shape");
  if (!fields[2].is_none()) {
    made.strides = IntsOf(fields[2], "a view's strides");
    if (made.strides.size() != made.shape.size()) {
      throw nb::value_error(absl::StrCat("tensor \"", name, "\": a view of ", made.shape.size(),
                                         " dimensions has ", made.strides.size(), " strides")
                                .c_str());
    }
  }
  made.dtype = DTypeOf(fields[3]);
  int device = 0;
  if (!nb::try_cast(fields[4], device) || device < 1 || device > 3) {
    throw nb::value_error(
        absl::StrCat("tensor \"", name, "\": a view's device is 1 (cpu), 2 (cuda) or 3 (pinned)")
            .c_str());
  }
  made.device = static_cast<DeviceKind>(device);
  return made;
}

// A view of all that `rank` owns, without data.
TensorView LateView(const TensorPart& tensor, int rank) {
  TensorView late;
  late.dtype = tensor.dtype;
  if (!tensor.layout.boxes.empty()) {
    for (const Box& box : tensor.layout.boxes.Of(rank)) {
      TensorView one;
      one.dtype = tensor.dtype;
      one.shape = box.shape;
      late.boxes.push_back(std::move(one));
    }
    return late;
  }
  absl::StatusOr<std::vector<int64_t>> shape = LocalShape(tensor.layout, tensor.shape, rank);
  // Connect names the error, on all ranks.
  if (shape.ok()) late.shape = *std::move(shape);
  return late;
}

}  // namespace

std::vector<int64_t> IntsOf(nb::handle sequence, const char* what) {
  std::vector<int64_t> values;
  if (!nb::try_cast(sequence, values)) {
    throw nb::type_error(absl::StrCat(what, " has to be a sequence of integers").c_str());
  }
  return values;
}

nb::tuple TupleOf(const std::vector<int64_t>& values) { return nb::tuple(nb::cast(values)); }

DType DTypeOf(nb::handle name) {
  std::string text;
  if (!nb::try_cast(name, text)) throw nb::type_error("a dtype has to be a name, as \"bf16\"");
  return ValueOrRaise(ParseDType(text));
}

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  for (const char* const name : kDTypes) {
    const absl::StatusOr<DType> dtype = ParseDType(name);
    if (dtype.ok() && DTypeName(*dtype) == name) names.emplace_back(name);
  }
  return names;
}

TensorView ViewOf(nb::handle view, const std::string& name) {
  if (!nb::isinstance<nb::list>(view)) return OneViewOf(view, name);
  TensorView boxes;
  for (const nb::handle box : nb::borrow<nb::list>(view)) {
    boxes.boxes.push_back(OneViewOf(box, name));
  }
  return boxes;
}

nb::tuple TupleOf(const TensorView& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.data) +
                       static_cast<uintptr_t>(view.data == nullptr ? 0 : view.byte_offset);
  nb::object strides = nb::none();
  if (!view.strides.empty()) strides = TupleOf(view.strides);
  return nb::make_tuple(address, TupleOf(view.shape), strides, std::string(DTypeName(view.dtype)),
                        static_cast<int>(view.device), view.device_ordinal);
}

NamedTensor NamedTensorOf(nb::handle entry, int rank) {
  if (!nb::isinstance<nb::tuple>(entry) || nb::len(entry) < 5 || nb::len(entry) > 7) {
    throw nb::type_error(
        "a tensor is (name, shape, dtype, layout, view), with a window or file dtype and an owner "
        "behind it");
  }
  const nb::tuple fields = nb::borrow<nb::tuple>(entry);
  NamedTensor read;
  TensorPart& tensor = read.part;
  if (!nb::try_cast(fields[0], tensor.name)) throw nb::type_error("a tensor's name is a str");
  tensor.shape = IntsOf(fields[1], "a tensor's shape");
  tensor.dtype = DTypeOf(fields[2]);
  if (!nb::isinstance<Layout>(fields[3])) {
    throw nb::type_error(
        absl::StrCat("tensor \"", tensor.name, "\": the layout has to be a Layout").c_str());
  }
  tensor.layout = *nb::inst_ptr<Layout>(fields[3]);
  if (fields[4].is_none()) {
    tensor.view = LateView(tensor, rank);
  } else {
    tensor.view = ViewOf(fields[4], tensor.name);
    // One box may be given as a view of its own.
    if (!tensor.layout.boxes.empty() && tensor.view.boxes.empty()) {
      TensorView boxes;
      boxes.boxes.push_back(std::move(tensor.view));
      tensor.view = std::move(boxes);
    }
  }
  if (fields.size() > 5) read.extra = fields[5];
  if (fields.size() > 6) read.owner = Hold(fields[6]);
  return read;
}

nb::object OptionReader::Take(const char* key) {
  known_.insert(key);
  if (!options_.contains(key)) return {};
  nb::object value = options_[key];
  return value.is_none() ? nb::object() : value;
}

void OptionReader::RefuseType(const char* key, nb::handle value) {
  const std::string type = nb::cast<std::string>(nb::type_name(value.type()));
  throw nb::type_error(absl::StrCat("option \"", key, "\" cannot be a ", type).c_str());
}

void OptionReader::RefuseKind(const Given& given, absl::string_view wanted) {
  Raise(absl::InvalidArgumentError(absl::StrCat("option '", given.name, "' is ",
                                                nb::repr(given.value).c_str(), "; it has to be ",
                                                wanted, given.or_none)));
}

void OptionReader::RefuseRange(const Given& given, absl::string_view low, absl::string_view high) {
  Raise(absl::InvalidArgumentError(absl::StrCat("option '", given.name, "' is ",
                                                nb::repr(given.value).c_str(), "; it has to be ",
                                                low, " to ", high)));
}

nb::handle OptionReader::RequireInt(const Given& given) {
  if (!PyLong_Check(given.value.ptr()) || PyBool_Check(given.value.ptr())) RefuseKind(given, "int");
  return given.value;
}

bool OptionReader::ToBool(const Given& given) {
  if (!PyBool_Check(given.value.ptr())) RefuseKind(given, "bool");
  return given.value.is(nb::handle(Py_True));
}

double OptionReader::ToDouble(const Given& given) {
  if (PyLong_Check(given.value.ptr()) && !PyBool_Check(given.value.ptr())) {
    int64_t whole = 0;
    if (nb::try_cast(given.value, whole)) return static_cast<double>(whole);
    RefuseRange(given, absl::StrCat(std::numeric_limits<int64_t>::min()),
                absl::StrCat(std::numeric_limits<int64_t>::max()));
  }
  if (!PyFloat_Check(given.value.ptr())) RefuseKind(given, "int or float");
  const auto value = nb::cast<double>(given.value);
  if (value == value) return value;
  Raise(absl::InvalidArgumentError(absl::StrCat("option '", given.name, "' is not a number")));
}

std::string OptionReader::ToText(const Given& given) {
  if (!PyUnicode_Check(given.value.ptr())) RefuseKind(given, "str");
  std::string text;
  // Names of files that are not UTF-8 have lone surrogates, as os.fsdecode gives them.
  if (!nb::try_cast(given.value, text)) {
    RefuseKind({given.name, given.value, ""}, "a str that UTF-8 can hold");
  }
  return text;
}

std::string OptionReader::ToBytes(const Given& given) {
  if (!nb::isinstance<nb::bytes>(given.value)) RefuseKind(given, "bytes");
  const auto bytes = nb::borrow<nb::bytes>(given.value);
  return {bytes.c_str(), bytes.size()};
}

DeviceKind OptionReader::ToDevice(const Given& given) {
  return static_cast<DeviceKind>(ToChoice(given, kDeviceKinds) + 1);
}

int OptionReader::ToChoice(const Given& given, absl::Span<const char* const> names) {
  const std::string text = ToText(given);
  for (size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) return static_cast<int>(i);
  }
  RefuseKind(given, absl::StrCat("one of ('", absl::StrJoin(names, "', '"), "')"));
}

ItemCrop OptionReader::ToCrop(const Given& given) {
  const std::vector<int64_t> crop = IntsOf(given.value, "crop");
  if (crop.size() != 4) {
    Raise(absl::InvalidArgumentError("crop is (top, left, height, width)"));
  }
  return {crop[0], crop[1], crop[2], crop[3]};
}

// Rounds to nearest and keeps subnormals, whatever the caller's thread does: all ranks have to get
// the same values.
ItemTransform OptionReader::ToTransform(const Given& given) {
  if (!nb::isinstance<nb::dict>(given.value)) RefuseKind(given, "dict");
  std::fenv_t callers;
  std::fegetenv(&callers);
  std::fesetenv(FE_DFL_ENV);
  const absl::Cleanup restore = [&callers] { std::fesetenv(&callers); };
  ItemTransform transform;
  OptionReader reader(nb::borrow<nb::dict>(given.value));
  Describe(reader, transform);
  reader.Finish();
  return transform;
}

namespace {

// The keys that a function returned. No error shows them, as they may be in a wrong order.
S3Credentials CredentialsOf(nb::handle returned) {
  const auto refuse = [](const char* what) { throw nb::type_error(what); };
  S3Credentials keys;
  if (!nb::isinstance<nb::sequence>(returned) || nb::isinstance<nb::str>(returned) ||
      nb::len(returned) < 2 || nb::len(returned) > 4) {
    refuse("it returned no (access key, secret key, session token or None, end or None)");
  }
  const nb::tuple fields(returned);
  const auto text = [&](size_t i, std::string* into) {
    if (i >= fields.size() || fields[i].is_none()) return;
    if (!nb::try_cast(fields[i], *into)) refuse("it returned a key that is no str");
  };
  text(0, &keys.access_key);
  text(1, &keys.secret_key);
  text(2, &keys.session_token);
  if (fields.size() < 4 || fields[3].is_none()) return keys;
  double seconds = 0;
  const nb::object end = fields[3];
  if (!nb::try_cast(nb::hasattr(end, "timestamp") ? end.attr("timestamp")() : end, seconds)) {
    refuse("it returned an end that is neither a datetime nor seconds as of time.time()");
  }
  keys.expires = absl::UnixEpoch() + absl::Seconds(seconds);
  return keys;
}

}  // namespace

S3CredentialsFunction OptionReader::ToCredentials(const Given& given) {
  if (PyCallable_Check(given.value.ptr()) == 0) {
    // Not shown: it may be the keys themselves.
    Raise(absl::InvalidArgumentError(
        absl::StrCat("option '", given.name, "' has to be a function that returns keys")));
  }
  return [owner = Hold(given.value)]() -> absl::StatusOr<S3Credentials> {
    if (Ended()) return absl::CancelledError("the interpreter ends");
    return WithGil([&]() -> absl::StatusOr<S3Credentials> {
      try {
        return CredentialsOf(nb::handle(owner.get())());
      } catch (const nb::python_error& error) {
        return absl::FailedPreconditionError(
            // Its text may have a key.
            absl::StrCat("the function of keys raised ",
                         nb::cast<std::string>(nb::str(error.type().attr("__name__")))));
      } catch (const std::exception& error) {
        return absl::InvalidArgumentError(absl::StrCat("the function of keys: ", error.what()));
      }
    });
  };
}

void OptionReader::Finish() const {
  for (const auto& [key, value] : options_) {
    const std::string text = nb::cast<std::string>(nb::str(key));
    if (known_.count(text) > 0) continue;
    const nb::object close = nb::module_::import_("difflib").attr("get_close_matches")(
        key, nb::cast(std::vector<std::string>(known_.begin(), known_.end())), 1, 0.75);
    const std::string meant =
        nb::len(close) == 0
            ? ""
            : absl::StrCat(" did you mean '", nb::cast<std::string>(close[0]), "'?");
    Raise(absl::InvalidArgumentError(absl::StrCat("there is no option '", text, "';", meant,
                                                  " there are ", absl::StrJoin(known_, ", "))));
  }
}

namespace {

Layout MakeLayout(std::vector<int64_t> sizes, std::vector<int> ranks,
                  const std::vector<std::string>& placements, std::vector<int> order) {
  Layout layout;
  layout.mesh = ValueOrRaise(Mesh::Create(std::move(sizes), std::move(ranks)));
  for (const std::string& text : placements) {
    layout.placements.push_back(ValueOrRaise(ParsePlacement(text)));
  }
  if (layout.placements.size() != layout.mesh.sizes().size()) {
    Raise(absl::InvalidArgumentError(absl::StrCat("a mesh of ", layout.mesh.sizes().size(),
                                                  " dimensions has ", layout.placements.size(),
                                                  " placements")));
  }
  layout.order = std::move(order);
  return layout;
}

RankBoxes RankBoxesOf(int rank, nb::handle boxes) {
  RankBoxes own;
  own.rank = rank;
  for (const nb::handle box : boxes) {
    const nb::tuple fields(nb::borrow(box));
    if (fields.size() != 2) throw nb::type_error("a box is (offset, shape)");
    own.boxes.push_back({IntsOf(fields[0], "a box's offset"), IntsOf(fields[1], "a box's shape")});
  }
  return own;
}

Layout LayoutOf(std::vector<RankBoxes> ranks) {
  Layout layout;
  layout.boxes = ValueOrRaise(BoxList::Create(std::move(ranks)));
  return layout;
}

Layout MakeBoxes(int rank, nb::handle boxes) {
  std::vector<RankBoxes> ranks;
  ranks.push_back(RankBoxesOf(rank, boxes));
  return LayoutOf(std::move(ranks));
}

Layout MakeBoxesOfRanks(nb::handle ranks) {
  std::vector<RankBoxes> all;
  for (const nb::handle entry : ranks) {
    const nb::tuple fields(nb::borrow(entry));
    if (fields.size() != 2) throw nb::type_error("boxes of ranks are (rank, boxes)");
    all.push_back(RankBoxesOf(nb::cast<int>(fields[0]), fields[1]));
  }
  return LayoutOf(std::move(all));
}

std::string ReprOf(const Layout& layout) {
  if (!layout.boxes.empty()) {
    return absl::StrCat("Layout(boxes of ", layout.boxes.ranks().size(), " ranks)");
  }
  std::vector<std::string> placements;
  for (const Placement& placement : layout.placements) {
    placements.push_back(absl::StrCat("'", PlacementName(placement), "'"));
  }
  std::string text = absl::StrCat("Layout([", absl::StrJoin(layout.mesh.sizes(), ", "), "], [",
                                  absl::StrJoin(layout.mesh.ranks(), ", "), "], [",
                                  absl::StrJoin(placements, ", "), "]");
  if (!layout.order.empty()) {
    absl::StrAppend(&text, ", [", absl::StrJoin(layout.order, ", "), "]");
  }
  return text + ")";
}

bool Same(const Layout& a, const Layout& b) {
  return a.mesh == b.mesh && a.placements == b.placements && a.order == b.order &&
         a.whole == b.whole && a.offset == b.offset && a.boxes == b.boxes;
}

std::vector<int> RanksOf(const Layout& layout) {
  if (layout.boxes.empty()) {
    return {layout.mesh.ranks().begin(), layout.mesh.ranks().end()};
  }
  std::vector<int> ranks;
  for (const RankBoxes& own : layout.boxes.ranks()) ranks.push_back(own.rank);
  return ranks;
}

}  // namespace

bool IsFirstCopy(const Layout& layout, int rank) {
  if (!layout.boxes.empty()) return !layout.boxes.Of(rank).empty();
  std::optional<int64_t> position = layout.mesh.PositionOf(rank);
  if (!position.has_value()) return false;
  for (size_t d = layout.placements.size(); d > 0; --d) {
    const int64_t size = layout.mesh.sizes()[d - 1];
    if (layout.placements[d - 1].kind == Placement::Kind::kReplicate && *position % size != 0) {
      return false;
    }
    *position /= size;
  }
  return true;
}

void BindValues(nb::module_& module) {
  module.def("dtypes", &DTypeNames, "Names of the element types.");
  module.def(
      "dtype_bytes", [](nb::handle name) { return DTypeBytes(DTypeOf(name)); }, nb::arg("name"),
      "Bytes of one element.");
  nb::class_<Layout>(module, "Layout",
                     "How a tensor lies over ranks: a mesh and placements, or boxes.")
      .def(
          "__init__",
          [](Layout* self, std::vector<int64_t> sizes, std::vector<int> ranks,
             const std::vector<std::string>& placements, std::vector<int> order) {
            new (self) Layout(
                MakeLayout(std::move(sizes), std::move(ranks), placements, std::move(order)));
          },
          nb::arg("sizes"), nb::arg("ranks"), nb::arg("placements"),
          nb::arg("order") = std::vector<int>())
      .def_static("boxes", &MakeBoxes, nb::arg("rank"), nb::arg("boxes"),
                  "Boxes (offset, shape) that this one rank holds.")
      .def_static("boxes_of", &MakeBoxesOfRanks, nb::arg("ranks"),
                  "Boxes of several ranks: (rank, boxes) of each.")
      .def(
          "local_shape",
          [](const Layout& self, nb::handle shape, int rank) {
            return TupleOf(ValueOrRaise(LocalShape(self, IntsOf(shape, "shape"), rank)));
          },
          nb::arg("shape"), nb::arg("rank"))
      .def(
          "owned_ranges",
          [](const Layout& self, nb::handle shape, int rank) {
            nb::list dims;
            for (const auto& ranges :
                 ValueOrRaise(OwnedRanges(self, IntsOf(shape, "shape"), rank))) {
              nb::list one;
              for (const IndexRange& range : ranges) {
                one.append(nb::make_tuple(range.begin, range.end));
              }
              dims.append(one);
            }
            return dims;
          },
          nb::arg("shape"), nb::arg("rank"))
      .def(
          "validate",
          [](const Layout& self, nb::handle shape) {
            RaiseIfError(ValidateLayout(self, IntsOf(shape, "shape")));
          },
          nb::arg("shape"), "Raises code 3 if the layout cannot hold a tensor of this shape.")
      .def("is_first_copy", &IsFirstCopy, nb::arg("rank"),
           "Whether the rank is in the mesh, and at 0 along all Replicate dimensions.")
      .def(
          "box_list",
          [](const Layout& self, int rank) {
            nb::list boxes;
            for (const Box& box : self.boxes.Of(rank)) {
              boxes.append(nb::make_tuple(TupleOf(box.offset), TupleOf(box.shape)));
            }
            return boxes;
          },
          nb::arg("rank"))
      .def_prop_ro("has_boxes", [](const Layout& self) { return !self.boxes.empty(); })
      .def_prop_ro("ranks", &RanksOf)
      .def_prop_ro("sizes",
                   [](const Layout& self) {
                     return std::vector<int64_t>(self.mesh.sizes().begin(),
                                                 self.mesh.sizes().end());
                   })
      .def_prop_ro("placements",
                   [](const Layout& self) {
                     std::vector<std::string> names;
                     for (const Placement& placement : self.placements) {
                       names.push_back(PlacementName(placement));
                     }
                     return names;
                   })
      .def_prop_ro("order", [](const Layout& self) { return self.order; })
      .def("__repr__", &ReprOf)
      .def("__eq__",
           [](const Layout& self, nb::handle other) {
             return nb::isinstance<Layout>(other) && Same(self, *nb::inst_ptr<Layout>(other));
           })
      .def("__hash__", [](const Layout& self) { return nb::hash(nb::str(ReprOf(self).c_str())); });
}

}  // namespace sluice::python
