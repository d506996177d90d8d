// A program that knows nothing of what has started it: sessions of its job, one after the other,
// two at once, beside a fork, and in a job of which one rank fails.
//
//   open_session | open_session fork | open_session fails
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/connect.h"
#include "sluice/job.h"
#include "sluice/layout.h"
#include "sluice/session.h"
#include "sluice/status.h"

namespace {

using sluice::OrDie;

void Expect(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(1);
}

// Rank 0 sends what it may not write, and every rank gets it.
void Broadcast(sluice::Session* session, float value) {
  const std::vector<float> given(1000, value);
  std::vector<float> got(1000);
  sluice::TransferSpec spec;
  spec.tensors.push_back(
      {.name = "w",
       .shape = {1000},
       .src = OrDie(sluice::Layout::Parse("1:R")),
       .dst = OrDie(sluice::Layout::Parse(absl::StrCat(session->size(), ":R")))});
  sluice::Transfer* const transfer = OrDie(session->Compile(spec));
  const std::span<const float> source(given);
  OrDie(OrDie(session->Start(transfer, {sluice::DenseView(source, {1000})},
                             {sluice::DenseView(got, {1000})}))
            .Wait());
  Expect(got == given, "what Start has moved");
  OrDie(session->Drop(transfer));

  std::ranges::fill(got, 0.0F);
  sluice::ConnectSpec own;
  if (session->rank() == 0) {
    own.AddSource({{.name = "w", .shape = {1000}, .layout = spec.tensors[0].src}},
                  sluice::DenseView(given, {1000}));
  }
  own.targets.push_back({{.name = "w",
                          .shape = {1000},
                          .layout = spec.tensors[0].dst,
                          .view = sluice::DenseView(got, {1000})}});
  const auto connection = OrDie(sluice::Connect(session, own));
  OrDie(OrDie(connection->Start()).Wait());
  Expect(got == given, "what a Connection has moved");
  OrDie(connection->Drop());
}

// Its exit runs the handlers of this process.
void Fork() {
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = sluice::OpenSession().status();
    std::exit(absl::IsFailedPrecondition(status) ? 0 : 1);
  }
  int status = 0;
  Expect(waitpid(child, &status, 0) == child && status == 0, "a forked child");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  auto first = OrDie(sluice::OpenSession({.budget_buckets = 8}));
  const int rank = first->rank();
  const int size = first->size();
  if (part == "fails" && rank == size - 1) return 3;
  if (part == "fork") Fork();
  Broadcast(first.get(), 1.0F);
  const auto second = OrDie(sluice::OpenSession());
  Broadcast(second.get(), 2.0F);
  Broadcast(first.get(), 3.0F);
  OrDie(first->Close());
  first = nullptr;
  const auto third = OrDie(sluice::OpenSession());
  Broadcast(third.get(), 4.0F);
  std::printf("rank %d of %d\n", rank, size);
}
