// Counting.
#include "fuse/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::fuse {

uint64_t Ledger::NumberOf(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = numbers_.try_emplace(path, objects_.size() + 1);
  if (is_new) objects_.emplace_back().path = path;
  return entry->second;
}

std::string Ledger::PathOf(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(object).path;
}

void Ledger::CountOpen(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++At(object).opens;
}

int Ledger::BeginRead(uint64_t object, uint64_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++At(object).reads;
  in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
  return At(object).attempts[offset]++;
}

void Ledger::EndRead(uint64_t object, uint64_t bytes, bool failed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  At(object).bytes += bytes;
  At(object).errors += failed ? 1 : 0;
  --in_flight_;
}

void Ledger::Truncate(uint64_t object, uint64_t end_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  At(object).end_bytes = std::min(At(object).end_bytes, end_bytes);
}

uint64_t Ledger::EndOf(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(object).end_bytes;
}

std::string Ledger::Report() {
  const std::lock_guard<std::mutex> lock(mutex_);
  nlohmann::json objects = nlohmann::json::object();
  for (const Object& object : objects_) {
    if (object.opens == 0) continue;
    objects[object.path] = {{"opens", object.opens},
                            {"reads", object.reads},
                            {"bytes", object.bytes},
                            {"errors", object.errors}};
  }
  const nlohmann::json report = {{"reports", ++reports_},
                                 {"in_flight", in_flight_},
                                 {"in_flight_max", in_flight_max_},
                                 {"objects", std::move(objects)}};
  return report.dump(1) + "\n";
}

}  // namespace sluice::fuse
