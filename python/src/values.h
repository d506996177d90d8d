// Python's tuples, lists and dicts as the values of the C++ library, and back.
#ifndef SLUICE_PYTHON_SRC_VALUES_H_
#define SLUICE_PYTHON_SRC_VALUES_H_

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "session/base/describe.h"
#include "sluice/layout.h"
#include "sluice/s3.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"
#include "support.h"

namespace sluice::python {

std::vector<int64_t> IntsOf(nb::handle sequence, const char* what);
nb::tuple TupleOf(const std::vector<int64_t>& values);
DType DTypeOf(nb::handle name);
std::vector<std::string> DTypeNames();

// A tensor as tuples describe it: (name, shape, dtype, layout, view, extra, owner), of which the
// last two may be missing.
struct NamedTensor {
  TensorPart part = {};
  nb::object extra = nb::none();
  Owner owner = nullptr;
};
NamedTensor NamedTensorOf(nb::handle entry, int rank);

// A view tuple, or a list of them for a rank's boxes. With None there is no data.
TensorView ViewOf(nb::handle view, const std::string& name);
nb::tuple TupleOf(const TensorView& view);

// Names of DeviceKind, from 1 on.
inline constexpr const char* kDeviceKinds[] = {"cpu", "cuda", "pinned"};

// Options of one call. As a visitor of Describe it sets the fields that are given. Errors are
// InvalidArgument, name the option, and are Python's users' to read.
class OptionReader {
 public:
  explicit OptionReader(nb::dict options) : options_(options) {}

  // The value; an invalid object where there is none, or None.
  nb::object Take(const char* key);
  // For values that the package has checked: None leaves what is there.
  template <typename T>
  void Read(const char* key, T* into) {
    const nb::object value = Take(key);
    if (value.is_valid() && !nb::try_cast(value, *into)) RefuseType(key, value);
  }
  template <typename T>
  void Read(const char* key, absl::optional<T>* into) {
    if (Take(key).is_valid()) Read(key, &into->emplace());
  }
  void Read(const char* key, absl::Duration* into) { *into = DurationOf(Take(key), key, *into); }

  // None stands for what is not set, and for no limit.
  template <typename T>
  void Field(absl::string_view path, T& field, const FieldRule& rule) {
    const std::string name(NameOf(path, rule));
    known_.insert(name);
    if (!options_.contains(name.c_str())) return;
    const nb::object value = options_[name.c_str()];
    if constexpr (kIsOptional<T>) {
      if (!value.is_none()) Convert({name, value, " or None"}, rule, &field.emplace());
    } else if constexpr (std::same_as<T, absl::Duration>) {
      const bool or_none = field == absl::InfiniteDuration();
      if (or_none && value.is_none()) return;
      Convert({name, value, or_none ? " or None" : ""}, rule, &field);
    } else {
      if constexpr (std::same_as<T, int64_t>) {
        if (rule.no_limit && value.is_none()) {
          field = kNoLimit;
          return;
        }
      }
      Convert({name, value, rule.no_limit ? " or None" : ""}, rule, &field);
    }
  }
  // An option that is given by other means.
  void Forget(const char* key) { known_.erase(key); }
  // InvalidArgument for options that are not known.
  void Finish() const;

 private:
  struct Given {
    const std::string& name;
    nb::handle value;
    const char* or_none;
  };
  template <typename T>
  static void Convert(const Given& given, const FieldRule& rule, T* into) {
    if constexpr (std::same_as<T, bool>) {
      *into = ToBool(given);
    } else if constexpr (std::integral<T>) {
      if (!nb::try_cast(RequireInt(given), *into)) {
        RefuseRange(given, absl::StrCat(std::numeric_limits<T>::min()),
                    absl::StrCat(std::numeric_limits<T>::max()));
      }
    } else if constexpr (std::same_as<T, absl::Duration>) {
      *into = absl::Seconds(ToDouble(given));
    } else if constexpr (std::same_as<T, double>) {
      *into = ToDouble(given);
    } else if constexpr (std::same_as<T, std::string>) {
      *into = rule.is_bytes ? ToBytes(given) : ToText(given);
    } else if constexpr (std::same_as<T, DeviceKind>) {
      *into = ToDevice(given);
    } else if constexpr (std::same_as<T, DType>) {
      *into = DTypeOf(given.value);
    } else if constexpr (std::is_enum_v<T>) {
      *into = static_cast<T>(ToChoice(given, rule.names));
    } else if constexpr (std::same_as<T, ItemCrop>) {
      *into = ToCrop(given);
    } else if constexpr (std::same_as<T, ItemTransform>) {
      *into = ToTransform(given);
    } else if constexpr (std::same_as<T, S3CredentialsFunction>) {
      *into = ToCredentials(given);
    } else if (!nb::try_cast(given.value, *into)) {
      RefuseType(given.name.c_str(), given.value);
    }
  }
  static nb::handle RequireInt(const Given& given);
  static bool ToBool(const Given& given);
  static double ToDouble(const Given& given);
  static std::string ToText(const Given& given);
  static std::string ToBytes(const Given& given);
  static DeviceKind ToDevice(const Given& given);
  static int ToChoice(const Given& given, absl::Span<const char* const> names);
  static ItemCrop ToCrop(const Given& given);
  static ItemTransform ToTransform(const Given& given);
  static S3CredentialsFunction ToCredentials(const Given& given);
  [[noreturn]] static void RefuseKind(const Given& given, absl::string_view wanted);
  [[noreturn]] static void RefuseRange(const Given& given, absl::string_view low,
                                       absl::string_view high);
  [[noreturn]] static void RefuseType(const char* key, nb::handle value);

  const nb::dict options_;
  std::set<std::string> known_;
};

template <typename Options>
Options OptionsOf(nb::dict given) {
  Options options;
  OptionReader reader(given);
  Describe(reader, options);
  reader.Finish();
  return options;
}

// The type of each option, as Python writes it. Tests compare these with the package's annotations.
class OptionTypes {
 public:
  template <typename T>
  void Field(absl::string_view path, [[maybe_unused]] const T& field, const FieldRule& rule) {
    bool or_none = rule.no_limit || kIsOptional<T>;
    if constexpr (std::same_as<T, absl::Duration>) or_none = field == absl::InfiniteDuration();
    types[std::string(NameOf(path, rule)).c_str()] =
        absl::StrCat(TypeOf<T>(rule), or_none ? " | None" : "");
  }
  nb::dict types;

 private:
  static std::string Choice(absl::Span<const char* const> names) {
    return absl::StrCat("Literal['", absl::StrJoin(names, "', '"), "']");
  }
  template <typename T>
  static std::string TypeOf(const FieldRule& rule) {
    if constexpr (kIsOptional<T>) {
      return TypeOf<typename T::value_type>(rule);
    } else if constexpr (std::same_as<T, bool>) {
      return "bool";
    } else if constexpr (std::integral<T>) {
      return "int";
    } else if constexpr (std::same_as<T, double> || std::same_as<T, absl::Duration>) {
      return "float";
    } else if constexpr (std::same_as<T, std::string>) {
      return rule.is_bytes ? "bytes" : "str";
    } else if constexpr (std::same_as<T, DeviceKind>) {
      return Choice(kDeviceKinds);
    } else if constexpr (std::same_as<T, S3CredentialsFunction>) {
      return "Callable[[], Sequence[Any]]";
    } else if constexpr (std::is_enum_v<T>) {
      return Choice(rule.names);
    } else {
      static_assert(std::same_as<T, ItemTransform>);
      return "Transform";
    }
  }
};

inline constexpr char kOptionTypes[] = "The type of each option, as Python writes it.";
template <typename Options>
nb::dict TypesOf() {
  OptionTypes visitor;
  const Options options;
  Describe(visitor, options);
  return visitor.types;
}

// A dict of statistics: of times, the seconds.
class StatsDict {
 public:
  template <typename T>
  void Field(absl::string_view path, const T& value, const FieldRule& rule = {}) {
    if constexpr (std::same_as<T, absl::Duration>) {
      Field(absl::StripSuffix(path, "_s"), absl::ToDoubleSeconds(value), rule);
    } else {
      values[std::string(rule.name.empty() ? path : rule.name).c_str()] = value;
    }
  }
  nb::dict values;
};
template <typename Stats>
nb::dict DictOf(const Stats& stats) {
  StatsDict dict;
  Describe(dict, stats);
  return dict.values;
}

// Whether the rank is in the mesh, and at 0 along all Replicate dimensions; of boxes: has some.
bool IsFirstCopy(const Layout& layout, int rank);

void BindValues(nb::module_& module);

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_VALUES_H_
