// UCX_TLS as a list of names, as UCX reads it.
#include "transport/ucx/ucx_networks.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

// "\\tcp" is this transport and no alias, and "tcp:aux" is for setting up connections alone.
bool IsTcp(absl::string_view name) {
  name = absl::StripAsciiWhitespace(name);
  absl::ConsumePrefix(&name, "\\");
  return name == "tcp" || absl::StartsWith(name, "tcp:");
}

}  // namespace

absl::StatusOr<UcxNetworks> ChooseUcxNetworks(absl::string_view transports,
                                              absl::string_view devices, UcxTcp tcp) {
  if (absl::StartsWith(transports, "^")) {
    return UcxNetworks{false, absl::StrCat(transports, ",tcp"), ""};
  }
  bool names_tcp = false;
  bool names_all = transports.empty();
  std::vector<absl::string_view> others;
  for (const absl::string_view name : absl::StrSplit(transports, ',')) {
    if (IsTcp(name)) {
      names_tcp = true;
    } else {
      others.push_back(name);
      names_all = names_all || absl::StripAsciiWhitespace(name) == "all";
    }
  }
  if (names_tcp && tcp == UcxTcp::kIfNamed) {
    const bool anywhere = devices.empty() || devices == "all";
    return UcxNetworks{true, "", anywhere ? "lo" : ""};
  }
  if (names_all) return UcxNetworks{false, "^tcp", ""};
  if (others.empty()) {
    return absl::UnavailableError(
        "UCX_TLS names UCX's own TCP alone, which asks nobody for a proof; it is taken where the "
        "wires are to be \"ucx\", and not \"auto\"");
  }
  return UcxNetworks{false, absl::StrJoin(others, ","), ""};
}

bool HasRdmaDevice() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

}  // namespace sluice
