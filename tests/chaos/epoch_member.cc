// One member of a world whose members come and go, for scripts/chaos/chaos_epochs.py.
//
//   epoch_member FOLDER STEPS KIB SILENCE_S LEASE_MS [no-direct] [again]
//
// It goes from epoch to epoch, or with `again` from world to world, each of which has one fabric.
// In each it runs STEPS transfers of KIB KiB between each two members and checks every element.
// When the store has lost its keys, it joins anew. It leaves between two epochs once
// FOLDER/leave-PID is there. What happens to it, it says in lines of JSON. The environment says
// which member of which world it is.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "session/rank_memory.h"
#include "session/specs.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "sluice/world.h"

namespace sluice::chaos {
namespace {

using nlohmann::json;

struct Job {
  std::string folder;
  int steps = 0;
  int64_t kib = 0;
  SessionOptions session;
  absl::Duration lease;
  bool again = false;
};

void Say(const std::string& what, json more = json::object()) {
  more["say"] = what;
  std::cout << more.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
}

json ErrorOf(const absl::Status& status) {
  return {{"code", absl::StatusCodeToString(status.code())},
          {"message", std::string(status.message())}};
}

bool IsToLeave(const Job& job) {
  return std::filesystem::exists(absl::StrCat(job.folder, "/leave-", getpid()));
}

// A session, and the memory of its runs. The session goes first.
struct EpochWork {
  std::unique_ptr<session_test::RankMemory> memory;
  std::unique_ptr<Session> session;
};

absl::Status RunSteps(const Job& job, int64_t epoch, std::unique_ptr<Fabric> fabric,
                      EpochWork* work) {
  SLUICE_ASSIGN_OR_RETURN(work->session, Session::Create(std::move(fabric), job.session));
  const TransferSpec spec = session_test::AllToAll(work->session->size(), job.kib << 10);
  SLUICE_ASSIGN_OR_RETURN(Transfer* const transfer, work->session->Compile(spec));
  work->memory = std::make_unique<session_test::RankMemory>(spec, work->session->rank());
  for (int step = 1; step <= job.steps; ++step) {
    // Other values in each epoch, so that bytes of an older one are wrong.
    const auto round = static_cast<uint64_t>(epoch * 1000 + step);
    work->memory->Prepare(round);
    SLUICE_ASSIGN_OR_RETURN(
        Run run, work->session->Start(transfer, work->memory->src(), work->memory->dst()));
    SLUICE_RETURN_IF_ERROR(run.Wait());
    if (const std::string wrong = work->memory->Check(round); !wrong.empty()) {
      Say("wrong", {{"epoch", epoch}, {"step", step}, {"what", wrong}});
    }
  }
  return absl::OkStatus();
}

// One epoch, or one world. Memory that others may still use goes to `kept`. False: it has failed.
bool RunEpoch(const Job& job, int64_t number, const json& members, std::unique_ptr<Fabric> fabric,
              std::vector<EpochWork>* kept) {
  Say("epoch", {{"number", number}, {"members", members}});
  EpochWork work;
  absl::Status status = RunSteps(job, number, std::move(fabric), &work);
  const absl::Status closed = work.session == nullptr ? absl::OkStatus() : work.session->Close();
  if (status.ok()) status = closed;
  json how = status.ok() ? json::object() : ErrorOf(status);
  how["number"] = number;
  Say(status.ok() ? "done" : "failed", std::move(how));
  if (!closed.ok()) kept->push_back(std::move(work));
  return status.ok();
}

// Until this member is to leave, or the world has failed.
absl::Status RunEpochs(const Job& job, const std::vector<RoleSize>& roles, World* world,
                       std::vector<EpochWork>* kept) {
  EpochOptions options;
  for (const RoleSize& each : roles) options.at_least.push_back({each.role, 1});
  while (!IsToLeave(job)) {
    SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fabric> fabric, world->NextEpoch(options));
    json members = json::array();
    for (const WorldMember& each : world->epoch_members()) members.push_back(each.pid);
    RunEpoch(job, world->epoch(), members, std::move(fabric), kept);
  }
  return absl::OkStatus();
}

// The one fabric of a world. Members agree on its number: one more than any of them has had.
absl::Status RunWorld(const Job& job, World* world, int64_t* number, std::vector<EpochWork>* kept) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fabric> fabric, world->MakeFabric());
  const std::array<int64_t, 2> own = {getpid(), *number};
  absl::Status status =
      fabric->StartAllGather({reinterpret_cast<const std::byte*>(own.data()), sizeof(own)});
  if (!status.ok()) return status;
  std::vector<std::byte> all;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const bool complete, fabric->PollAllGather(&all, nullptr));
    if (complete) break;
    if (status = fabric->CheckRanks(); !status.ok()) return status;
    absl::SleepFor(absl::Milliseconds(1));
  }
  json members = json::array();
  for (size_t at = 0; at < all.size(); at += sizeof(own)) {
    std::array<int64_t, 2> each = {};
    std::memcpy(each.data(), all.data() + at, sizeof(each));
    members.push_back(each[0]);
    *number = std::max(*number, each[1]);
  }
  RunEpoch(job, ++*number, members, std::move(fabric), kept);
  return absl::OkStatus();
}

// The keys are lost with a store that ends. Its successor knows nobody.
bool MayJoinAnew(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status);
}

absl::Status RunMember(const Job& job) {
  SLUICE_ASSIGN_OR_RETURN(WorldOptions options, WorldOptionsFromEnvironment());
  options.lease = job.lease;
  std::vector<EpochWork> kept;
  int64_t number = 0;
  while (true) {
    absl::StatusOr<std::unique_ptr<World>> world = World::Join(options);
    absl::Status status = world.status();
    if (status.ok()) {
      Say("joined");
      status = job.again ? RunWorld(job, world->get(), &number, &kept)
                         : RunEpochs(job, options.roles, world->get(), &kept);
    }
    if (status.ok() && job.again && !IsToLeave(job)) continue;
    if (!MayJoinAnew(status)) return status;
    Say("joins anew", ErrorOf(status));
    // It may have failed for a reason that stays.
    absl::SleepFor(absl::Milliseconds(50));
  }
}

int Main(const std::vector<std::string>& args) {
  Job job;
  int silence_s = 0;
  int64_t lease_ms = 0;
  if (args.size() < 6 || !absl::SimpleAtoi(args[2], &job.steps) ||
      !absl::SimpleAtoi(args[3], &job.kib) || !absl::SimpleAtoi(args[4], &silence_s) ||
      !absl::SimpleAtoi(args[5], &lease_ms)) {
    std::cerr << "usage: see epoch_member.cc\n";
    return 2;
  }
  job.folder = args[1];
  job.session.timeout = absl::Seconds(silence_s);
  job.session.direct = std::count(args.begin(), args.end(), "no-direct") == 0;
  job.again = args.back() == "again";
  job.lease = absl::Milliseconds(lease_ms);
  const absl::Status status = RunMember(job);
  Say(status.ok() ? "left" : "ended", status.ok() ? json::object() : ErrorOf(status));
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  return sluice::chaos::Main(std::vector<std::string>(argv, argv + argc));
}
