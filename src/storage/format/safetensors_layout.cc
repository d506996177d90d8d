// Laying out tensors and writing their safetensors header.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/format/json_events.h"
#include "storage/format/safetensors.h"
#include "storage/tensor_bytes.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "tensor/round.h"

namespace sluice {
namespace {

absl::Status CheckSpec(const SafetensorsSpec& spec) {
  const auto wrong = [&](absl::string_view what) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     TensorInWords(spec.name, Quoted(spec.name)), " ", what);
  };
  if (spec.name.empty()) return absl::InvalidArgumentError("a tensor has an empty name");
  if (spec.name == kSafetensorsMetadataKey)
    return wrong("has a name that the format keeps for itself");
  if (spec.shape.size() > kMaxTensorDims) {
    return wrong(absl::StrCat("has more than ", kMaxTensorDims, " dimensions"));
  }
  if (std::any_of(spec.shape.begin(), spec.shape.end(), [](int64_t n) { return n < 0; })) {
    return wrong("has a negative size");
  }
  if (!TensorBytes(spec.type, spec.shape).has_value()) return wrong("has more bytes than 63 bits");
  return absl::OkStatus();
}

absl::Status CheckSpecs(absl::Span<const SafetensorsSpec> specs) {
  absl::flat_hash_set<absl::string_view> names;
  for (const SafetensorsSpec& spec : specs) {
    SLUICE_RETURN_IF_ERROR(CheckSpec(spec));
    if (!names.insert(spec.name).second) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(spec.name, Quoted(spec.name)), " is there twice");
    }
  }
  return absl::OkStatus();
}

// Places in `specs`, those of larger elements first.
std::vector<size_t> OrderOf(absl::Span<const SafetensorsSpec> specs) {
  std::vector<size_t> order(specs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ElementBytes(specs[a].type) > ElementBytes(specs[b].type);
  });
  return order;
}

// Appends "key":value after a comma, unless it is an object's first.
absl::Status AppendMember(absl::string_view key, absl::string_view value, std::string* json) {
  SLUICE_ASSIGN_OR_RETURN(const auto quoted, JsonQuoted(key));
  absl::StrAppend(json, json->back() == '{' ? "" : ",", quoted, ":", value);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MetadataText(const SafetensorsMetadata& metadata) {
  std::string json = "{";
  absl::flat_hash_set<absl::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (!keys.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat("metadata ", Quoted(key), " is there twice"));
    }
    SLUICE_ASSIGN_OR_RETURN(const auto quoted, JsonQuoted(value));
    SLUICE_RETURN_IF_ERROR(AppendMember(key, quoted, &json));
  }
  return json + "}";
}

// The tensors' offsets count from the beginning of the data.
absl::StatusOr<std::string> HeaderText(const SafetensorsMetadata& metadata,
                                       absl::Span<const SafetensorsTensor> tensors,
                                       absl::Span<const size_t> order) {
  std::string json = "{";
  if (!metadata.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const auto text, MetadataText(metadata));
    SLUICE_RETURN_IF_ERROR(AppendMember(kSafetensorsMetadataKey, text, &json));
  }
  for (const size_t i : order) {
    const SafetensorsTensor& tensor = tensors[i];
    const std::string value =
        absl::StrCat("{\"dtype\":\"", SafetensorsName(tensor.type), "\",\"shape\":[",
                     absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", tensor.begin, ",",
                     tensor.end, "]}");
    SLUICE_RETURN_IF_ERROR(AppendMember(tensor.name, value, &json));
  }
  return json + "}";
}

std::string WithPrefix(const std::string& json, int64_t data_alignment) {
  const auto alignment = static_cast<size_t>(data_alignment);
  const size_t unpadded = kSafetensorsPrefixBytes + json.size();
  const size_t padded = RoundUp(unpadded, alignment);
  const uint64_t length = padded - kSafetensorsPrefixBytes;
  std::string header;
  header.reserve(padded);
  for (int i = 0; i < 8; ++i) header += static_cast<char>(length >> (8 * i) & 0xFF);
  header += json;
  header.resize(padded, ' ');
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const SafetensorsSpec> specs,
                                                    const SafetensorsMetadata& metadata,
                                                    int64_t data_alignment) {
  SLUICE_CHECK(data_alignment > 0 && data_alignment % 8 == 0, "alignment must be a multiple of 8");
  SLUICE_RETURN_IF_ERROR(CheckSpecs(specs));
  SafetensorsLayout layout;
  for (const SafetensorsSpec& spec : specs) {
    layout.tensors.push_back({spec.name, spec.type, spec.shape});
  }
  const std::vector<size_t> order = OrderOf(specs);
  // Room for the header below 63 bits.
  constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / 2;
  int64_t end = 0;
  for (const size_t i : order) {
    SafetensorsTensor& tensor = layout.tensors[i];
    const int64_t bytes = *TensorBytes(tensor.type, tensor.shape);
    if (bytes > kMostBytes - end) {
      return absl::InvalidArgumentError("the tensors have more bytes than 62 bits");
    }
    tensor.begin = end;
    tensor.end = end += bytes;
  }
  SLUICE_ASSIGN_OR_RETURN(const auto json, HeaderText(metadata, layout.tensors, order));
  layout.header = WithPrefix(json, data_alignment);
  const auto data_begin = static_cast<int64_t>(layout.header.size());
  const SafetensorsLimits limits;
  if (data_begin - kSafetensorsPrefixBytes > limits.header_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header has ", data_begin, " bytes, more than readers take: ", limits.header_bytes));
  }
  for (SafetensorsTensor& tensor : layout.tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
  layout.object_bytes = data_begin + end;
  return layout;
}

}  // namespace sluice
