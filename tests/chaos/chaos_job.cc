// A session, the operations of the job one after the other, and a verdict.
#include "chaos/chaos_job.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "sluice/testing.h"

namespace sluice::chaos {
namespace {

using nlohmann::json;

SessionOptions OptionsOf(const json& from, size_t rank) {
  SessionOptions options;
  if (const int64_t bytes = from.at("bucket_bytes"); bytes > 0) options.bucket_bytes = bytes;
  options.budget_buckets = from.at("budget_buckets");
  if (const int depth = from.at("max_in_flight"); depth > 0) options.max_in_flight = depth;
  options.timeout = absl::Seconds(from.at("timeout_s").get<int64_t>());
  options.direct = from.at("direct");
  options.progress_thread = from.at("progress").at(rank);
  return options;
}

}  // namespace

json ReadJob(const std::string& folder) {
  json job;
  std::ifstream(folder + "/job.json") >> job;
  return job;
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path + ".part") << content << std::flush;
  std::rename((path + ".part").c_str(), path.c_str());
}

void SayPid(const std::string& folder, int rank) {
  WriteFile(absl::StrCat(folder, "/pid-", rank), absl::StrCat(getpid()));
}

void ChaosJob::Run(absl::StatusOr<std::unique_ptr<Fabric>> fabric, const std::string& maker) {
  const bool created = Create(std::move(fabric), maker);
  const bool ok = created && Operate();
  if (created) Close(ok);
  Write(ok);
  if (!ok || !closed_.ok() || job_.at("kills").get<bool>()) Leave();
  checkpoints_.reset();
  streams_.reset();
  transfers_.reset();
  session_.reset();
}

bool ChaosJob::Create(absl::StatusOr<std::unique_ptr<Fabric>> fabric, const std::string& maker) {
  if (!verdict_.Take(fabric.status(), maker)) return false;
  std::ofstream(absl::StrCat(folder_, "/met-", rank_)).flush();  // the others know its process
  const json& session = job_.at("session");
  const SessionOptions options = OptionsOf(session, static_cast<size_t>(rank_));
  auto created = session.at("relay").get<bool>() ? Session::Create(*std::move(fabric), options)
                                                 : CreateNaiveSession(*std::move(fabric), options);
  if (!verdict_.Take(created.status(), "Session::Create")) return false;
  session_ = *std::move(created);
  return true;
}

bool ChaosJob::Operate() {
  transfers_ =
      std::make_unique<Transfers>(session_.get(), &watch_, &verdict_, job_.at("transfers"));
  streams_ = std::make_unique<Streams>(session_.get(), &watch_, &verdict_, job_, folder_,
                                       [this] { return transfers_->Advance(); });
  checkpoints_ = std::make_unique<Checkpoints>(session_.get(), &watch_, &verdict_,
                                               job_.at("checkpoints"), folder_);
  watch_.Start();
  watch_.Allow(session_->slots() * session_->slot_bytes());
  bool ok = true;
  for (const json& op : job_.at("ops")) {
    at_ = op.at("op");
    ok = Do(op);
    if (!ok) break;
    ++done_;
  }
  watch_.Stop();
  if (ok && session_->slots() > 0) {
    const SessionCounters counters = session_->counters();
    if (counters.buckets_peak > session_->slots()) {
      verdict_.Wrong(absl::StrCat(counters.buckets_peak, " buckets held, of ", session_->slots()));
    }
  }
  return ok;
}

bool ChaosJob::Do(const json& op) {
  return at_ == "compile"    ? transfers_->Compile(op)
         : at_ == "run"      ? transfers_->Start(op)
         : at_ == "cancel"   ? transfers_->Cancel(op)
         : at_ == "finish"   ? transfers_->Finish()
         : at_ == "open"     ? streams_->Open(op)
         : at_ == "take"     ? streams_->Take(op)
         : at_ == "close"    ? streams_->Close(op)
         : at_ == "truncate" ? streams_->Truncate(op)
         : at_ == "save"     ? checkpoints_->Save(op)
         : at_ == "load"     ? checkpoints_->Load(op)
                             : Sleep(op);
}

// Where the session has failed, streams and memory stay as they are until it is closed.
void ChaosJob::Close(bool ok) {
  const auto before = std::chrono::steady_clock::now();
  if (!ok && streams_ != nullptr) {
    for (size_t i = 0; i < job_.at("streams").size(); ++i) streams_->Close({{"stream", i}});
  }
  closed_ = session_->Close();
  if (ok) verdict_.Take(closed_, "Close");
  close_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

bool ChaosJob::Sleep(const json& op) const {
  const int64_t ms = op.at("ms").at(static_cast<size_t>(rank_));
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return true;
}

void ChaosJob::Write(bool ok) const {
  json result = {{"rank", rank_},
                 {"ok", ok},
                 {"ops_done", done_},
                 {"at", at_},
                 {"wrong", verdict_.wrong},
                 {"counts", verdict_.counts},
                 {"growth_bytes", watch_.growth_bytes()},
                 {"shared_growth_bytes", watch_.shared_growth_bytes()},
                 {"allowed_bytes", watch_.allowed_bytes()},
                 {"closed", closed_.ToString()},
                 {"close_seconds", close_seconds_},
                 {"errors", json::array()}};
  for (const Verdict::Error& error : verdict_.errors) {
    result["errors"].push_back({{"where", error.where},
                                {"code", absl::StatusCodeToString(error.status.code())},
                                {"message", std::string(error.status.message())}});
  }
  WriteFile(absl::StrCat(folder_, "/rank-", rank_, ".json"),
            result.dump(-1, ' ', false, json::error_handler_t::replace));
}

// Ends the process without MPI_Finalize, which would wait for who is gone, and with memory that may
// still be written to. To the others a rank that ends early is one that has failed, so this one
// stays until all have had their say. It sleeps: nobody may need it any more.
void ChaosJob::Leave() const {
  constexpr int kLongestMs = 240'000;
  for (int ms = 0; ms < kLongestMs && !std::filesystem::exists(folder_ + "/over"); ms += 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::cout.flush();
  _exit(0);
}

}  // namespace sluice::chaos
