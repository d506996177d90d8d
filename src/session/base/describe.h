// Describes the fields of public structs, once for all that lists them.
//
// Describe(v, struct) calls v.Field(path, field, rule) for each field of a public struct, and
// v.Field(path, field) for most statistics. Visitors of C, Python and sluice-bench are in their
// folders. Rules between fields stay plain code.
#ifndef SLUICE_SRC_SESSION_BASE_DESCRIBE_H_
#define SLUICE_SRC_SESSION_BASE_DESCRIBE_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/s3.h"
#include "tensor/stable_hash.h"

namespace sluice {

// To one HTTP server. Each has a handle of its own from the start.
inline constexpr int kConnectionsMax = 4096;

struct FieldRule {
  // In C and Python. Empty: the last part of the path. Statistics have the name of C as their path,
  // and Python's here; empty: the same, but for the "_s" of times.
  absl::string_view name = {};
  // The range of a signed number. A time is above 0 with a `min` of 1, and at least 0 with one of
  // 0.
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  bool no_limit = false;                     // kNoLimit, the largest number, stands for none
  bool equal = false;                        // on all ranks: a part of their hash
  bool is_bytes = false;                     // a text that need not be UTF-8
  absl::Span<const char* const> names = {};  // of an enum's values, from 0 on
};

// Fields without rules, each after its name.
template <typename Visitor>
void EachOf(Visitor& /*v*/) {}
template <typename Visitor, typename T, typename... Others>
void EachOf(Visitor& v, const char* name, T& field, Others&... others) {
  v.Field(name, field);
  EachOf(v, others...);
}

// The fields of a source of S3. Nobody hashes or shows credentials.
template <typename Visitor, typename Struct>
void DescribeS3(Visitor& v, Struct& o) {
  v.Field("s3.endpoint", o.endpoint, {.name = "s3_endpoint"});
  v.Field("s3.region", o.region, {.name = "s3_region"});
  v.Field("s3.credentials", o.credentials, {.name = "s3_credentials"});
}

// A struct that is read, or written.
template <typename T, typename Struct>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Struct>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<absl::optional<T>> = true;
template <typename T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

// In C and Python.
inline absl::string_view NameOf(absl::string_view path, const FieldRule& rule) {
  return rule.name.empty() ? path.substr(path.rfind('.') + 1) : rule.name;
}

// Two wordings: "slots is 0 but must be at least 1", and "slots is 0; it must be 1 or more".
enum class RangeWords : uint8_t { kBut, kItMust };

// A visitor that finds the first field out of its range.
class CheckRanges {
 public:
  explicit CheckRanges(RangeWords words) : words_(words) {}

  template <typename T>
  void Field(absl::string_view path, const T& value, const FieldRule& rule) {
    if constexpr (kIsOptional<T>) {
      if (value) Check(path, *value, rule, true);
    } else {
      Check(path, value, rule, false);
    }
  }

  // InvalidArgument names the field.
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  void Check(absl::string_view path, const T& value, const FieldRule& rule, bool may_be_unset) {
    if constexpr (std::same_as<T, absl::Duration>) {
      CheckTime(path, value, rule);
    } else if constexpr (std::signed_integral<T>) {
      CheckNumber(path, value, rule, may_be_unset);
    }
  }
  void CheckTime(absl::string_view path, absl::Duration value, const FieldRule& rule);
  void CheckNumber(absl::string_view path, int64_t value, const FieldRule& rule, bool may_be_unset);

  const RangeWords words_;
  absl::Status status_;
};

// A visitor that hashes the fields that are equal on all ranks.
class HashEqual {
 public:
  template <typename T>
  void Field(absl::string_view /*path*/, const T& value, const FieldRule& rule) {
    if constexpr (!std::same_as<T, S3CredentialsFunction>) {
      if (rule.equal) Add(value);
    }
  }
  uint64_t value() const { return hash_.value(); }

 private:
  // Lengths come first, so that no two structs give one sequence.
  template <typename T>
  void Add(const T& value) {
    if constexpr (kIsOptional<T>) {
      hash_.AddSigned(value ? 1 : 0);
      if (value) Add(*value);
    } else if constexpr (std::same_as<T, float>) {
      // No cast to double: where subnormals are flushed, other ranks would have another number.
      hash_.Add(std::bit_cast<uint32_t>(value));
    } else if constexpr (std::same_as<T, double>) {
      hash_.Add(std::bit_cast<uint64_t>(value));
    } else if constexpr (std::same_as<T, absl::Duration>) {
      hash_.AddSigned(absl::ToInt64Nanoseconds(value));
    } else if constexpr (std::integral<T> || std::is_enum_v<T>) {
      hash_.AddSigned(static_cast<int64_t>(value));
    } else if constexpr (std::same_as<T, std::string>) {
      hash_.AddText(value);
    } else {
      Describe(*this, value);
    }
  }
  template <typename T>
  void Add(const std::vector<T>& values) {
    hash_.Add(values.size());
    for (const T& value : values) Add(value);
  }

  StableHash hash_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_DESCRIBE_H_
