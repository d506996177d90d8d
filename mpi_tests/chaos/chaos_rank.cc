// One rank of a random job, which does what a file says and leaves a file that says how it went.
//
//   chaos_rank FOLDER    (FOLDER/job.json is the job; scripts/chaos.py makes it and judges)
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "chaos/checkpoints.h"
#include "chaos/memory_watch.h"
#include "chaos/streams.h"
#include "chaos/transfers.h"
#include "chaos/verdict.h"
#include "nlohmann/json.hpp"
#include "sluice/mpi.h"
#include "sluice/session.h"
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

class ChaosRank {
 public:
  ChaosRank(const json& job, std::string folder, int rank)
      : job_(job), folder_(std::move(folder)), rank_(rank) {}

  void Run() {
    const json& session = job_.at("session");
    MpiFabricOptions placed;
    const int ranks_per_node = session.at("ranks_per_node");
    if (ranks_per_node > 0) placed.ranks_per_node = ranks_per_node;
    auto fabric = MakeMpiFabric(MPI_COMM_WORLD, placed);
    if (!verdict_.Take(fabric.status(), "MakeMpiFabric")) return;
    std::ofstream(absl::StrCat(folder_, "/met-", rank_)).flush();  // the others know its process
    const SessionOptions options = OptionsOf(session, static_cast<size_t>(rank_));
    auto created = session.at("relay").get<bool>()
                       ? Session::Create(*std::move(fabric), options)
                       : CreateNaiveSession(*std::move(fabric), options);
    if (!verdict_.Take(created.status(), "Session::Create")) return;
    session_ = *std::move(created);
    Transfers transfers(session_.get(), &watch_, &verdict_, job_.at("transfers"));
    Streams streams(session_.get(), &watch_, &verdict_, job_, folder_,
                    [&transfers] { return transfers.Advance(); });
    Checkpoints checkpoints(session_.get(), &watch_, &verdict_, job_.at("checkpoints"), folder_);
    watch_.Start();
    watch_.Allow(session_->slots() * session_->slot_bytes());
    bool ok = true;
    for (const json& op : job_.at("ops")) {
      const std::string name = op.at("op");
      at_ = name;
      ok = name == "compile"    ? transfers.Compile(op)
           : name == "run"      ? transfers.Start(op)
           : name == "cancel"   ? transfers.Cancel(op)
           : name == "finish"   ? transfers.Finish()
           : name == "open"     ? streams.Open(op)
           : name == "take"     ? streams.Take(op)
           : name == "close"    ? streams.Close(op)
           : name == "truncate" ? streams.Truncate(op)
           : name == "save"     ? checkpoints.Save(op)
           : name == "load"     ? checkpoints.Load(op)
                                : Sleep(op);
      if (!ok) break;
      ++done_;
    }
    watch_.Stop();
    if (ok && session_->slots() > 0) {
      const SessionCounters counters = session_->counters();
      if (counters.buckets_peak > session_->slots()) {
        verdict_.Wrong(
            absl::StrCat(counters.buckets_peak, " buckets held, of ", session_->slots()));
      }
    }
    // Where the session has failed, streams and memory stay as they are until it is closed.
    const auto before = std::chrono::steady_clock::now();
    if (ok) {
      closed_ = session_->Close();
      verdict_.Take(closed_, "Close");
    } else {
      for (const json& op : job_.at("streams").empty() ? json::array() : CloseOps()) {
        streams.Close(op);
      }
      closed_ = session_->Close();
    }
    close_seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    Write(ok);
    if (ok && closed_.ok() && !job_.at("kills").get<bool>()) return;
    Leave();
  }

  void Write(bool ok) {
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
    const std::string name = absl::StrCat(folder_, "/rank-", rank_, ".json");
    std::ofstream(name + ".part") << result.dump(-1, ' ', false, json::error_handler_t::replace)
                                  << std::flush;
    std::rename((name + ".part").c_str(), name.c_str());
    written_ = true;
  }
  bool written() const { return written_; }

  // Ends the process without MPI_Finalize, which would wait for who is gone, and with memory that
  // may still be written to. To the others a rank that ends early is one that has failed, so this
  // one stays until all have had their say. It sleeps: nobody may need it any more.
  [[noreturn]] void Leave() const {
    constexpr int kLongestMs = 240'000;
    for (int ms = 0; ms < kLongestMs && !std::filesystem::exists(folder_ + "/over"); ms += 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::cout.flush();
    _exit(0);
  }

  void CloseSession() { session_.reset(); }

 private:
  bool Sleep(const json& op) {
    const int64_t ms = op.at("ms").at(static_cast<size_t>(rank_));
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return true;
  }

  json CloseOps() const {
    json ops = json::array();
    for (size_t i = 0; i < job_.at("streams").size(); ++i) ops.push_back({{"stream", i}});
    return ops;
  }

  const json& job_;
  const std::string folder_;
  const int rank_;
  MemoryWatch watch_;
  Verdict verdict_;
  std::unique_ptr<Session> session_;
  std::string at_ = "setup";
  int64_t done_ = 0;
  absl::Status closed_;
  double close_seconds_ = 0;
  bool written_ = false;
};

int Main(const std::string& folder) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  json job;
  std::ifstream(folder + "/job.json") >> job;
  if (rank == 0) {
    const absl::Status made = MakeDatasets(job.at("datasets"), folder);
    if (!made.ok()) std::cerr << made << "\n";
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // From here on this process may be stopped or killed.
  const std::string name = absl::StrCat(folder, "/pid-", rank);
  std::ofstream(name + ".part") << getpid() << std::flush;
  std::rename((name + ".part").c_str(), name.c_str());
  ChaosRank self(job, folder, rank);
  self.Run();
  if (!self.written()) {
    self.Write(false);
    self.Leave();
  }
  self.CloseSession();
  return 0;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const int code = sluice::chaos::Main(argv[1]);
  MPI_Finalize();
  return code;
}
