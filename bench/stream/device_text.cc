// A name, and the rate of a device that is emulated.
#include "stream/device_text.h"

#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice::bench {

absl::Status ParseDeviceText(StreamBenchOptions* options) {
  const std::string& text = options->device_text;
  const size_t colon = text.find(':');
  const bool has_rate = colon != std::string::npos;
  options->device = text.substr(0, colon);
  double* const rate = &options->device_gb_per_s;
  const bool good_rate = has_rate && absl::SimpleAtod(text.substr(colon + 1), rate) &&
                         std::isfinite(*rate) && *rate > 0;
  const bool is_plain = options->device == "cpu" || options->device == "cuda";
  if (options->is_emulated() ? !has_rate || good_rate : is_plain && !has_rate) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of cpu, cuda, emulated or emulated:GB/S"));
}

}  // namespace sluice::bench
