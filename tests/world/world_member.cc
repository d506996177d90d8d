// One process of a world, for tests that start, stop and kill such processes.
//
//   world_member member STEPS KIB SECONDS [no-direct] [wait-fabric] [wait-session] [wait-end]
//                [epochs]
//   world_member store PORT TOKEN
//
// A member joins as the environment says, makes a fabric and a session, and runs STEPS transfers of
// KIB KiB between each two ranks; 0: for ever. SECONDS is how long others may be silent. It says on
// lines of its own how far it has come, and waits for a line of input where it is told to. With
// `epochs` it begins another epoch after STEPS transfers, and after each failure, for ever. A store
// serves until its input ends.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "session/rank_memory.h"
#include "session/specs.h"
#include "sluice/session.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"

namespace sluice::world_test {
namespace {

struct Job {
  int steps = 0;
  int64_t kib = 1;
  SessionOptions session;
  bool waits_for_fabric = false;
  bool waits_for_session = false;
  bool waits_at_end = false;
  bool epochs = false;
};

void Say(const std::string& line) { std::cout << line << std::endl; }

void WaitForLine() {
  std::string line;
  std::getline(std::cin, line);
}

// `kept` outlives the session: a run that fails may use it until then.
absl::Status RunSteps(const Job& job, Session* session,
                      std::unique_ptr<session_test::RankMemory>* kept) {
  const TransferSpec spec = session_test::AllToAll(session->size(), job.kib << 10);
  const absl::StatusOr<Transfer*> transfer = session->Compile(spec);
  if (!transfer.ok()) return transfer.status();
  *kept = std::make_unique<session_test::RankMemory>(spec, session->rank());
  session_test::RankMemory& memory = **kept;
  for (int step = 1; job.steps == 0 || step <= job.steps; ++step) {
    const auto round = static_cast<uint64_t>(step);
    memory.Prepare(round);
    absl::StatusOr<Run> run = session->Start(*transfer, memory.src(), memory.dst());
    if (!run.ok()) return run.status();
    if (absl::Status status = run->Wait(); !status.ok()) return status;
    const std::string wrong = memory.Check(round);
    if (!wrong.empty()) return absl::DataLossError(absl::StrCat("wrong elements: ", wrong));
    Say(absl::StrCat("step ", step));
  }
  if (job.waits_at_end) {
    Say("waits");
    WaitForLine();
    const Deadline looks(absl::Milliseconds(500));
    while (!looks.Passed()) {
      if (absl::Status status = session->Poll(); !status.ok()) return status;
    }
  }
  return session->Close();
}

// One epoch after the other, until the world fails.
absl::Status RunEpochs(const Job& job, const std::vector<RoleSize>& roles, World* world) {
  EpochOptions options;
  for (const RoleSize& each : roles) options.at_least.push_back({each.role, 1});
  while (true) {
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = world->NextEpoch(options);
    if (!fabric.ok()) return fabric.status();
    Say(absl::StrCat("epoch ", world->epoch(), " of ", (*fabric)->size()));
    std::unique_ptr<session_test::RankMemory> memory;
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(*std::move(fabric), job.session);
    const absl::Status status =
        session.ok() ? RunSteps(job, session->get(), &memory) : session.status();
    if (!status.ok()) Say(absl::StrCat("failed: ", status.ToString()));
  }
}

absl::Status RunMember(const Job& job) {
  const absl::StatusOr<WorldOptions> options = WorldOptionsFromEnvironment();
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::unique_ptr<World>> world = World::Join(*options);
  if (!world.ok()) return world.status();
  Say("joined");
  if (job.waits_for_fabric) WaitForLine();
  if (job.epochs) return RunEpochs(job, options->roles, world->get());
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = (*world)->MakeFabric();
  if (!fabric.ok()) return fabric.status();
  Say(absl::StrCat("fabric ", (*fabric)->rank(), " of ", (*fabric)->size(), " on nodes ",
                   absl::StrJoin((*fabric)->node_of_rank(), ",")));
  if (job.waits_for_session) WaitForLine();
  std::unique_ptr<session_test::RankMemory> memory;
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(*std::move(fabric), job.session);
  if (!session.ok()) return session.status();
  return RunSteps(job, session->get(), &memory);
}

int Serve(const std::string& port, const std::string& token) {
  StoreServerOptions options;
  options.token = token;
  if (!absl::SimpleAtoi(port, &options.port)) return 2;
  const auto server = StoreServer::Listen(options);
  if (!server.ok()) {
    Say(absl::StrCat("error: ", server.status().ToString()));
    return 1;
  }
  Say(absl::StrCat("serves ", (*server)->address()));
  WaitForLine();
  return 0;
}

int Main(const std::vector<std::string>& args) {
  if (args.size() == 4 && args[1] == "store") return Serve(args[2], args[3]);
  Job job;
  int seconds = 0;
  if (args.size() < 5 || args[1] != "member" || !absl::SimpleAtoi(args[2], &job.steps) ||
      !absl::SimpleAtoi(args[3], &job.kib) || !absl::SimpleAtoi(args[4], &seconds)) {
    std::fputs("usage: see world_member.cc\n", stderr);
    return 2;
  }
  job.session.timeout = absl::Seconds(seconds);
  for (size_t i = 5; i < args.size(); ++i) {
    if (args[i] == "no-direct") job.session.direct = false;
    if (args[i] == "wait-fabric") job.waits_for_fabric = true;
    if (args[i] == "wait-end") job.waits_at_end = true;
    if (args[i] == "epochs") job.epochs = true;
    if (args[i] == "wait-session") job.waits_for_session = true;
  }
  const absl::Status status = RunMember(job);
  Say(status.ok() ? "done" : absl::StrCat("error: ", status.ToString()));
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::world_test

int main(int argc, char** argv) {
  return sluice::world_test::Main(std::vector<std::string>(argv, argv + argc));
}
