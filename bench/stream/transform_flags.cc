// Numbers out of texts; whether they make sense is the library's to say.
#include "stream/transform_flags.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "session/stream/item_normalizer.h"
#include "sluice/status.h"
#include "sluice/tensor.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

absl::Status RefuseText(absl::string_view flag, absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": \"", text, "\" is not ", wanted));
}

absl::Status ParseFactors(const char* flag, const std::string& text, std::vector<float>* factors) {
  if (text.empty()) return absl::OkStatus();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtof(part, &factors->emplace_back())) {
      return RefuseText(flag, text, "a list of numbers such as 0.017,0.0175,0.0174");
    }
  }
  return absl::OkStatus();
}

absl::Status ParseNumbers(const char* flag, const std::string& text, size_t count,
                          std::vector<int64_t>* numbers) {
  if (text.empty()) return absl::OkStatus();
  bool good = true;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    good = absl::SimpleAtoi(part, &numbers->emplace_back()) && good;
  }
  if (good && numbers->size() == count) return absl::OkStatus();
  return RefuseText(flag, text, count == 3 ? "HEIGHT,WIDTH,CHANNELS" : "TOP,LEFT,HEIGHT,WIDTH");
}

absl::Status ParseTypes(const std::string& text, ItemTransform* transform) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const bool has_factors = parts.size() == 4 && absl::SimpleAtof(parts[2], &transform->scale) &&
                           absl::SimpleAtof(parts[3], &transform->bias);
  if (parts.size() != 2 && !has_factors) {
    return RefuseText("--transform", text,
                      "SRC:DST:SCALE:BIAS, such as u8:f32:0.5:-1, nor SRC:DST");
  }
  const absl::StatusOr<DType> src = ParseDType(parts[0]);
  const absl::StatusOr<DType> dst = ParseDType(parts[1]);
  if (!src.ok()) return Prefixed("--transform", src.status());
  if (!dst.ok()) return Prefixed("--transform", dst.status());
  transform->src = *src;
  transform->dst = *dst;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<absl::optional<ItemTransform>> ParseTransformFlags(const TransformFlags& flags) {
  if (flags.types.empty()) {
    if (TransformText(flags).empty()) return absl::optional<ItemTransform>();
    return absl::InvalidArgumentError(
        absl::StrCat(TransformText(flags), " goes with --transform, such as --transform u8:f32"));
  }
  ItemTransform transform;
  std::vector<int64_t> crop;
  absl::Status status = ParseTypes(flags.types, &transform);
  status.Update(ParseFactors("--channel-scale", flags.channel_scale, &transform.channel_scale));
  status.Update(ParseFactors("--channel-bias", flags.channel_bias, &transform.channel_bias));
  status.Update(ParseNumbers("--item-shape", flags.item_shape, 3, &transform.shape));
  status.Update(ParseNumbers("--crop", flags.crop, 4, &crop));
  if (!status.ok()) return status;
  transform.planar = flags.planar;
  if (!crop.empty()) transform.crop = ItemCrop{crop[0], crop[1], crop[2], crop[3]};
  SLUICE_RETURN_IF_ERROR(Prefixed("--transform", CheckTransform(transform)));
  return absl::optional<ItemTransform>(transform);
}

std::string TransformText(const TransformFlags& flags) {
  std::string text = flags.types;
  const auto add = [&text](const char* flag, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, text.empty() ? "" : " ", flag, " ", value);
  };
  add("--channel-scale", flags.channel_scale);
  add("--channel-bias", flags.channel_bias);
  add("--item-shape", flags.item_shape);
  add("--crop", flags.crop);
  if (flags.planar) absl::StrAppend(&text, text.empty() ? "" : " ", "--planar");
  return text;
}

}  // namespace sluice::bench
