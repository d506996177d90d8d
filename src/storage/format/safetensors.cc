// Reading a safetensors header and checking it against the object.
#include "storage/format/safetensors.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/format/json_events.h"
#include "storage/tensor_bytes.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// The object's tensors as the JSON has them: offsets from the beginning of the data, unchecked.
class HeaderListener final : public JsonListener {
 public:
  HeaderListener(const SafetensorsLimits& limits, SafetensorsHeader* header)
      : limits_(limits), header_(header) {}

  absl::StatusOr<Answer> Begin(const JsonPath& path, JsonKind kind) override {
    const int depth = path.depth();
    if (depth < 2) {
      if (kind != JsonKind::kObject) return WrongKind(path, "an object", kind);
      if (depth == 1 && path.key(0) != kSafetensorsMetadataKey) {
        SLUICE_RETURN_IF_ERROR(BeginTensor(path.key(0)));
      }
      return Answer::kRead;
    }
    if (depth > 2) return WrongKind(path, "an integer", kind);
    if (InMetadata(path)) return WrongKind(path, "a string", kind);
    const std::string& key = path.key(1);
    if (key == "dtype") return WrongKind(path, "a string", kind);
    if (key != "shape" && key != "data_offsets") return Answer::kSkip;
    if (kind != JsonKind::kList) return WrongKind(path, "a list", kind);
    (key == "shape" ? has_shape_ : has_offsets_) = true;
    return Answer::kRead;
  }

  absl::Status End(const JsonPath& path) override {
    if (path.depth() != 1 || path.key(0) == kSafetensorsMetadataKey) return absl::OkStatus();
    const char* missing = !has_type_      ? "dtype"
                          : !has_shape_   ? "shape"
                          : !has_offsets_ ? "data_offsets"
                                          : nullptr;
    if (missing != nullptr) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(path.key(0), Quoted(path.key(0))), " has no \"", missing,
                       "\"");
    }
    if (offsets_.size() != 2) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(path.key(0), Quoted(path.key(0))), " has ", offsets_.size(),
                       " data_offsets, not 2");
    }
    SafetensorsTensor& tensor = header_->tensors.back();
    tensor.begin = offsets_[0];
    tensor.end = offsets_[1];
    if (tensor.unreadable.empty()) tensor.shape.assign(shape_.begin(), shape_.end());
    return absl::OkStatus();
  }

  absl::Status Scalar(const JsonPath& path, const JsonScalar& value) override {
    const int depth = path.depth();
    if (depth == 1 && InMetadata(path) && value.kind == JsonKind::kNull) return absl::OkStatus();
    if (depth < 2) return WrongKind(path, "an object", value.kind);
    if (depth == 2) return InMetadata(path) ? Metadata(path, value) : Type(path, value);
    return Number(path, value);
  }

 private:
  static bool InMetadata(const JsonPath& path) { return path.key(0) == kSafetensorsMetadataKey; }

  absl::Status BeginTensor(const std::string& name) {
    if (name.empty()) return absl::InvalidArgumentError("a tensor has an empty name");
    if (static_cast<int64_t>(header_->tensors.size()) >= limits_.tensors) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", limits_.tensors, " tensors"));
    }
    header_->tensors.emplace_back().name = name;
    has_type_ = has_shape_ = has_offsets_ = false;
    shape_.clear();
    offsets_.clear();
    return absl::OkStatus();
  }

  absl::Status Metadata(const JsonPath& path, const JsonScalar& value) {
    SLUICE_ASSIGN_OR_RETURN(auto text, StringAt(path, value));
    header_->metadata.emplace_back(path.key(1), std::move(text));
    return absl::OkStatus();
  }

  absl::Status Type(const JsonPath& path, const JsonScalar& value) {
    const std::string& key = path.key(1);
    if (key == "shape" || key == "data_offsets") return WrongKind(path, "a list", value.kind);
    if (key != "dtype") return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(const auto text, StringAt(path, value));
    const auto type = ParseSafetensorsName(text);
    has_type_ = true;
    if (type.ok()) {
      header_->tensors.back().type = *type;
    } else {
      header_->tensors.back().unreadable = std::string(type.status().message());
    }
    return absl::OkStatus();
  }

  absl::Status Number(const JsonPath& path, const JsonScalar& value) {
    SLUICE_ASSIGN_OR_RETURN(const auto number, IntegerAt(path, value));
    const bool is_shape = path.key(1) == "shape";
    std::vector<int64_t>& list = is_shape ? shape_ : offsets_;
    // How long longer lists are is not worth memory.
    const int most = is_shape ? kMaxTensorDims : 2;
    if (static_cast<int>(list.size()) < most) {
      list.push_back(number);
      return absl::OkStatus();
    }
    if (!is_shape) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(path.key(0), Quoted(path.key(0))),
                       " has more than 2 data_offsets");
    }
    header_->tensors.back().unreadable = absl::StrCat("more than ", most, " dimensions");
    return absl::OkStatus();
  }

  const SafetensorsLimits& limits_;
  SafetensorsHeader* header_;
  // State of the tensor that is being read.
  bool has_type_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
};

absl::Status CheckTensor(const SafetensorsTensor& tensor) {
  const auto name = [&tensor] { return TensorInWords(tensor.name, Quoted(tensor.name)); };
  if (tensor.begin > tensor.end) {
    return MakeError(absl::StatusCode::kInvalidArgument, name(), " ends at ", tensor.end,
                     ", before its begin ", tensor.begin);
  }
  if (!tensor.unreadable.empty()) return absl::OkStatus();
  const auto bytes = TensorBytes(tensor.type, tensor.shape);
  if (!bytes.has_value()) {
    return MakeError(absl::StatusCode::kInvalidArgument, name(), " has more bytes than 63 bits");
  }
  if (*bytes == tensor.bytes()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, name(), " has ", tensor.bytes(),
                   " bytes by its data_offsets, but ", *bytes, " by its shape and dtype");
}

// Sorts the tensors, checks that they fill the data without holes, and makes offsets count from the
// beginning of the object.
absl::Status PlaceTensors(SafetensorsHeader* header) {
  std::stable_sort(header->tensors.begin(), header->tensors.end(),
                   [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  int64_t end = 0;
  for (SafetensorsTensor& tensor : header->tensors) {
    SLUICE_RETURN_IF_ERROR(CheckTensor(tensor));
    if (tensor.begin != end) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(tensor.name, Quoted(tensor.name)), " begins at ", tensor.begin,
                       tensor.begin < end
                           ? ", within another one that ends at "
                           : ", which leaves a hole after the one before that ends at ",
                       end);
    }
    end = tensor.end;
    if (end > std::numeric_limits<int64_t>::max() - header->data_begin) {
      return absl::InvalidArgumentError("the tensors have more bytes than 63 bits");
    }
    tensor.begin += header->data_begin;
    tensor.end += header->data_begin;
  }
  header->object_bytes = header->data_begin + end;
  return absl::OkStatus();
}

absl::string_view TextOf(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Names the kind of an object that begins so; empty for none that takes a checkpoint's place.
absl::string_view Likeness(absl::string_view first) {
  struct Kind {
    absl::string_view begin;
    absl::string_view name;
  };
  constexpr Kind kKinds[] = {{"version ", "a pointer of Git LFS, whose file has not been fetched"},
                             {"<!DOCTYP", "a page of HTML"},
                             {"<!doctyp", "a page of HTML"},
                             {"<html", "a page of HTML"},
                             {"PK\3\4", "a zip archive, as torch.save writes"},
                             {"\x80\2", "a pickle"},
                             {"\x80\4", "a pickle"},
                             {"GGUF", "a GGUF file"},
                             {"\x93NUMPY", "a .npy file"},
                             {"\x89HDF", "an HDF5 file"}};
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(first, kind.begin)) return kind.name;
  }
  return "";
}

}  // namespace

absl::StatusOr<int64_t> SafetensorsHeaderBytes(absl::Span<const std::byte> first,
                                               int64_t object_bytes,
                                               const SafetensorsLimits& limits) {
  if (static_cast<int64_t>(first.size()) < kSafetensorsPrefixBytes ||
      (object_bytes >= 0 && object_bytes < kSafetensorsPrefixBytes)) {
    return absl::DataLossError("a safetensors object has at least 8 bytes");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(first[i]) << (8 * i);
  if (length > static_cast<uint64_t>(limits.header_bytes)) {
    const absl::string_view likeness = Likeness(TextOf(first));
    if (!likeness.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is no safetensors file: it looks like ", likeness));
    }
    return absl::InvalidArgumentError(absl::StrCat("a safetensors header of ", length,
                                                   " bytes is longer than the limit of ",
                                                   limits.header_bytes));
  }
  if (length < 2) return absl::InvalidArgumentError("a safetensors header has at least 2 bytes");
  const int64_t bytes = kSafetensorsPrefixBytes + static_cast<int64_t>(length);
  if (object_bytes >= 0 && bytes > object_bytes) {
    return absl::DataLossError(absl::StrCat("the object has ", object_bytes,
                                            " bytes, but its safetensors header alone ", bytes));
  }
  return bytes;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::Span<const std::byte> first,
                                                         int64_t object_bytes,
                                                         const SafetensorsLimits& limits) {
  SLUICE_ASSIGN_OR_RETURN(const auto header_bytes,
                          SafetensorsHeaderBytes(first, object_bytes, limits));
  if (static_cast<int64_t>(first.size()) < header_bytes) {
    return absl::DataLossError(
        absl::StrCat("only ", first.size(), " of a safetensors header's ", header_bytes, " bytes"));
  }
  const absl::string_view text = TextOf(first).substr(
      kSafetensorsPrefixBytes, static_cast<size_t>(header_bytes - kSafetensorsPrefixBytes));
  if (text.front() != '{') {
    return absl::InvalidArgumentError("a safetensors header must begin with '{'");
  }
  SafetensorsHeader header;
  header.data_begin = header_bytes;
  HeaderListener listener(limits, &header);
  // Metadata may hold whole files, such as a tokenizer's.
  const JsonLimits json = {
      .text_bytes = limits.header_bytes, .string_bytes = limits.header_bytes, .depth = 64};
  absl::Status status = ReadJson(text, json, &listener);
  if (status.ok()) status = PlaceTensors(&header);
  SLUICE_RETURN_IF_ERROR(Annotate(status, "safetensors header"));
  if (object_bytes >= 0 && header.object_bytes > object_bytes) {
    return absl::DataLossError(absl::StrCat(
        "the object has ", object_bytes, " bytes, but its tensors end at ", header.object_bytes));
  }
  if (object_bytes > header.object_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the object has ", object_bytes - header.object_bytes,
                     " bytes after the last tensor, which ends at ", header.object_bytes));
  }
  return header;
}

}  // namespace sluice
