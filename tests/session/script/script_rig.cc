// Events of all machines, and how scripts spell statuses and layouts.
#include "session/script/script_rig.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tensor/check.h"

namespace sluice::session_test {

using deadlock::ScriptWords;

void ScriptRig::Obey(ScriptWords& words) {
  const std::string& name = words.name();
  const int read = words.Take("until_read", 0);
  if (name == "end") {
    End();
    device_ = nullptr;
    transport_ = nullptr;
    source_ = nullptr;
    return;
  }
  if (name == "done") {
    Done(words.RestFrom(1));
  } else if (name == "fail") {
    Fail(words);
  } else if (name == "refuse" || name == "break") {
    Trouble(words);
  } else if (name == "parting") {
    transport_->HoldParting(words.Take("held", std::string("no")) == "yes");
  } else if (name == "poison") {
    Poison(StatusFrom(words.RestFrom(1)));
  } else if (name != "poll") {
    SLUICE_CHECK(ObeyOwn(words), "a script has an unknown event");
  }
  Drive();
  while (read > 0 && !source_->IsOpen(absl::StrCat("read ", read))) Drive();
}

void ScriptRig::Done(absl::string_view names) {
  std::vector<std::string> all;
  if (names == "all") {
    const auto add = [&all](const LoggedOperations& operations) {
      for (const LoggedOperation& each : operations.open()) all.push_back(each.name);
    };
    if (device_ != nullptr) add(device_->batches());
    if (transport_ != nullptr) add(transport_->operations());
    if (source_ != nullptr) add(source_->reads());
  } else {
    all = absl::StrSplit(names, ", ");
  }
  for (const std::string& name : all) {
    if (!EndOperation(name, absl::OkStatus())) log_.Write(absl::StrCat(name, " is not open"));
  }
}

bool ScriptRig::EndOperation(absl::string_view name, const absl::Status& status) {
  if (status.ok() && device_ != nullptr && device_->End(name)) return true;
  if (transport_ != nullptr && transport_->End(name, status)) return true;
  return source_ != nullptr && source_->End(name, status);
}

void ScriptRig::Fail(const ScriptWords& words) {
  const std::vector<std::string> rest = absl::StrSplit(words.RestFrom(1), absl::MaxSplits(' ', 2));
  SLUICE_CHECK(rest.size() == 3, "a failure is spelled: fail send 1 CODE: TEXT");
  const std::string name = absl::StrCat(rest[0], " ", rest[1]);
  if (!EndOperation(name, StatusFrom(rest[2]))) log_.Write(absl::StrCat(name, " is not open"));
}

void ScriptRig::Trouble(const ScriptWords& words) {
  const std::pair<std::string, std::string> rest =
      absl::StrSplit(words.RestFrom(1), absl::MaxSplits(' ', 1));
  const absl::Status status = StatusFrom(rest.second);
  const auto bring = [&words, &status](auto* fake) {
    SLUICE_CHECK(fake != nullptr, "a script troubles what is not there");
    words.name() == "refuse" ? fake->RefuseNext(status) : fake->Break(status);
  };
  if (rest.first == "device") return bring(device_);
  if (rest.first == "transport") return bring(transport_);
  SLUICE_CHECK(rest.first == "source", "seams are device, transport and source");
  bring(source_);
}

absl::Status StatusFrom(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(": ", 1));
  absl::StatusCode found = absl::StatusCode::kOk;
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const absl::StatusCode each = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(each) == parts.first) found = each;
  }
  SLUICE_CHECK(found != absl::StatusCode::kOk, "a script has an unknown status code");
  return absl::Status(found, parts.second);
}

std::string StatusText(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

std::vector<int64_t> ShapeFrom(absl::string_view text) {
  std::vector<int64_t> shape;
  for (const absl::string_view word : absl::StrSplit(text, 'x')) {
    shape.push_back(0);
    SLUICE_CHECK(absl::SimpleAtoi(word, &shape.back()), "shapes are spelled 4x16");
  }
  return shape;
}

std::vector<int> RanksFrom(absl::string_view text) {
  std::vector<int> ranks;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    ranks.push_back(0);
    SLUICE_CHECK(absl::SimpleAtoi(word, &ranks.back()), "ranks are spelled 0,1");
  }
  return ranks;
}

Mesh MeshFrom(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  std::vector<int> ranks = RanksFrom(parts[0]);
  std::vector<int64_t> sizes = {static_cast<int64_t>(ranks.size())};
  if (parts.size() > 1) sizes = ShapeFrom(parts[1]);
  absl::StatusOr<Mesh> mesh = Mesh::Create(std::move(sizes), std::move(ranks));
  SLUICE_CHECK(mesh.ok(), "a script has no good mesh");
  return *std::move(mesh);
}

Layout LayoutFrom(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ':');
  absl::StatusOr<std::vector<Placement>> placements = ParsePlacements(parts.second);
  SLUICE_CHECK(placements.ok(), "a script has no good placements");
  return {MeshFrom(parts.first), *std::move(placements)};
}

void WriteLines(absl::string_view text, OperationsLog* log) {
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    log->Write(line);
  }
}

}  // namespace sluice::session_test
