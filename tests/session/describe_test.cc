// All that Describe says of public options: ranges, what ranks must give equally, names in C.
#include "session/base/describe.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/checkpoint/checkpoint_limits.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "session/describe_session.h"
#include "session/limits.h"
#include "session/stream/describe_stream.h"
#include "session/stream/stream_options.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// A visitor that does something to the field of one number.
template <typename Act>
class AtField {
 public:
  AtField(int number, Act act) : number_(number), act_(act) {}

  template <typename T>
  void Field(absl::string_view path, T& field, const FieldRule& rule) {
    if (seen_++ == number_) act_(path, field, rule);
  }
  bool found() const { return seen_ > number_; }

 private:
  const int number_;
  const Act act_;
  int seen_ = 0;
};

// act(struct, path, field, rule) for each field of a struct of its own.
template <typename Struct, typename Act>
void ForEachField(const Act& act) {
  for (int number = 0;; ++number) {
    Struct options;
    AtField at(number, [&](absl::string_view path, auto& field, const FieldRule& rule) {
      act(options, path, field, rule);
    });
    Describe(at, options);
    if (!at.found()) return;
  }
}

template <typename T>
bool Set(T& field, int64_t value) {
  if constexpr (kIsOptional<T>) {
    if constexpr (kIsNumber<typename T::value_type>) return Set(field.emplace(), value);
  } else if constexpr (std::same_as<T, absl::Duration>) {
    field = absl::Nanoseconds(value);
    return true;
  } else if constexpr (std::signed_integral<T>) {
    field = static_cast<T>(value);
    return field == value;
  }
  return false;
}

template <typename Struct>
absl::Status Ranges(const Struct& options) {
  CheckRanges ranges(RangeWords::kBut);
  Describe(ranges, options);
  return ranges.status();
}

// `check`: what the call for these options checks.
template <typename Struct, typename Check>
int CheckBounds(const Check& check) {
  int bounds = 0;
  EXPECT_TRUE(check(Struct()).ok());
  ForEachField<Struct>(
      [&](Struct& options, absl::string_view path, auto& field, const FieldRule& rule) {
        for (const bool low : {true, false}) {
          const int64_t bound = low ? rule.min : rule.max;
          if (bound == kLeast || bound == kMost || !Set(field, bound)) continue;
          EXPECT_TRUE(Ranges(options).ok()) << path << ": " << Ranges(options);
          if (!Set(field, low ? bound - 1 : bound + 1)) continue;
          const absl::Status status = check(options);
          EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
          EXPECT_THAT(std::string(status.message()), HasSubstr(path)) << path;
          ++bounds;
        }
      });
  return bounds;
}

TEST(DescribeTest, EachBoundIsChecked) {
  EXPECT_EQ(CheckBounds<StreamOptions>(CheckStreamOptions), 19);
  EXPECT_EQ(CheckBounds<CheckpointOptions>(CheckCheckpointOptions), 10);
  EXPECT_EQ(CheckBounds<SessionOptions>(
                [](const SessionOptions& options) { return ResolveBudget(options).status(); }),
            10);
}

TEST(DescribeTest, ErrorsSayTheRange) {
  const auto text = [](RangeWords words, const auto& value, const FieldRule& rule) {
    CheckRanges ranges(words);
    ranges.Field("a.b", value, rule);
    return std::string(ranges.status().message());
  };
  const absl::optional<int64_t> least = kLeast;
  EXPECT_EQ(text(RangeWords::kBut, int64_t{0}, {.min = 1}), "a.b is 0 but must be at least 1");
  EXPECT_EQ(text(RangeWords::kBut, 4097, {.max = 4096}), "a.b is 4097 but must be at most 4096");
  EXPECT_EQ(text(RangeWords::kBut, least, {.min = -1}),
            "a.b is -9223372036854775808 but must be at least -1");
  EXPECT_EQ(text(RangeWords::kBut, absl::ZeroDuration(), {.min = 1}), "a.b must be above 0");
  EXPECT_EQ(text(RangeWords::kItMust, 0, {.min = 1, .no_limit = true}),
            "a.b is 0; it must be 1 or more, or kNoLimit");
  EXPECT_EQ(text(RangeWords::kItMust, least, {.min = 16, .max = 64}),
            "a.b is -9223372036854775808; it must be 16 to 64, or not set");
  EXPECT_EQ(text(RangeWords::kItMust, absl::ZeroDuration(), {.min = 1}), "a.b must be positive");
  EXPECT_EQ(text(RangeWords::kItMust, -absl::Seconds(1), {.min = 0}), "a.b must not be negative");
}

TEST(DescribeTest, TheFirstOfSeveralIsNamed) {
  StreamOptions options;
  options.buffers.batch_items = 0;
  options.reads.budget_bytes = 0;
  EXPECT_THAT(std::string(CheckStreamOptions(options).message()), HasSubstr("budget_bytes is 0"));
}

template <typename T>
void Change(T& field) {
  if constexpr (kIsOptional<T>) {
    Change(field.emplace());
  } else if constexpr (std::same_as<T, bool>) {
    field = !field;
  } else if constexpr (std::same_as<T, std::string>) {
    field += 'x';
  } else if constexpr (std::same_as<T, absl::Duration>) {
    field = field == absl::Seconds(1) ? absl::Seconds(2) : absl::Seconds(1);
  } else if constexpr (std::is_enum_v<T>) {
    field = static_cast<T>(static_cast<int>(field) + 1);
  } else if constexpr (std::same_as<T, S3CredentialsFunction>) {
    field = [] { return S3Credentials(); };
  } else if constexpr (kIsNumber<T>) {
    field += 1;
  } else if constexpr (std::same_as<T, ItemTransform>) {
    field.planar = true;
  } else if constexpr (std::same_as<T, ItemCrop>) {
    field.top = 1;
  } else {
    field.emplace_back();
  }
}

template <typename Struct>
uint64_t HashOf(const Struct& options) {
  HashEqual hash;
  Describe(hash, options);
  return hash.value();
}

// Names of the fields whose change the hash does not show.
template <typename Struct>
std::vector<std::string> MayDiffer() {
  std::vector<std::string> names;
  ForEachField<Struct>(
      [&](Struct& options, absl::string_view path, auto& field, const FieldRule& rule) {
        Change(field);
        const bool shown = HashOf(options) != HashOf(Struct());
        EXPECT_EQ(shown, rule.equal) << path;
        if (!shown) names.emplace_back(NameOf(path, rule));
      });
  return names;
}

TEST(DescribeTest, RanksMayDifferInTheseAlone) {
  EXPECT_THAT(
      MayDiffer<StreamOptions>(),
      ElementsAre("index", "connections", "ca_file", "s3_endpoint", "s3_region", "s3_credentials",
                  "first", "step", "end", "cursor", "in_order", "budget_bytes", "slots", "hedge",
                  "hedge_quantile", "hedge_extra_share_max", "attempts_max", "backoff",
                  "request_timeout", "buffers", "batch_items", "device", "await_in_stream",
                  "timeout", "trace_epochs"));
  EXPECT_THAT(MayDiffer<ItemTransform>(), ElementsAre());
  EXPECT_THAT(MayDiffer<ItemCrop>(), ElementsAre());
  EXPECT_THAT(
      MayDiffer<CheckpointOptions>(),
      ElementsAre("budget_bytes", "slots", "attempts_max", "backoff", "request_timeout", "timeout",
                  "connections", "ca_file", "s3_endpoint", "s3_region", "s3_credentials"));
  StreamOptions sized;
  sized.source.sized_generator = [](int64_t, absl::Span<std::byte>) { return int64_t{0}; };
  EXPECT_NE(HashOfStream(sized), HashOfStream(StreamOptions()));
}

// Names of fields that a struct of sluice.h has not. There times have "_s" behind their names, and
// what is true by default has "no_" before its own.
template <typename Struct>
std::vector<std::string> NotInC(const std::string& name) {
  std::ifstream file(SLUICE_SOURCE_DIR "/include/sluice/sluice.h");
  const std::string header((std::istreambuf_iterator<char>(file)), {});
  const size_t end = header.find("\n} " + name + ";");
  const size_t begin = header.rfind("typedef struct {", end);
  EXPECT_NE(end, header.npos) << name;
  const std::string fields = header.substr(begin, end - begin);
  std::vector<std::string> missing;
  ForEachField<Struct>([&](Struct&, absl::string_view path, auto&, const FieldRule& rule) {
    const absl::string_view field = NameOf(path, rule);
    bool found = false;
    for (const std::string& in_c :
         {absl::StrCat(" ", field, ";"), absl::StrCat("*", field, ";"),
          absl::StrCat(" ", field, "_s;"), absl::StrCat(" no_", field, ";")}) {
      found = found || fields.find(in_c) != fields.npos;
    }
    if (!found) missing.emplace_back(field);
  });
  return missing;
}

TEST(DescribeTest, EachFieldIsInC) {
  // `as_they_come` is the contrary of in_order. C's sessions have no accelerator, so there are no
  // items for a device, and nothing to await. Of epochs in traces C has the default, and keys of S3
  // come from the environment or a profile.
  EXPECT_THAT(
      NotInC<StreamOptions>("sluice_stream_options"),
      ElementsAre("s3_credentials", "in_order", "device", "await_in_stream", "trace_epochs"));
  EXPECT_THAT(NotInC<CheckpointOptions>("sluice_checkpoint_options"),
              ElementsAre("s3_credentials"));
  EXPECT_THAT(NotInC<SessionOptions>("sluice_session_options"), ElementsAre());
}

}  // namespace
}  // namespace sluice
