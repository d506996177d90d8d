// Reading arguments, and timing.
#include "peers/rounds.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sluice::peers {
namespace {

// All ranks are on one host, and have this clock in common.
int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Print(const std::vector<double>& times_us, int64_t wrong) {
  std::printf("{\"wrong\": %lld, \"times_us\": [", static_cast<long long>(wrong));
  for (size_t i = 0; i < times_us.size(); ++i)
    std::printf("%s%.3f", i > 0 ? ", " : "", times_us[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace

void Fail(const std::string& what) {
  std::fprintf(stderr, "peer: %s\n", what.c_str());
  std::_Exit(EXIT_FAILURE);
}

Arguments::Arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) Fail("arguments are NAME=VALUE, not " + argument);
    values_[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
}

std::string Arguments::Text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) Fail(name + "= is missing");
  return found->second;
}

int64_t Arguments::Number(const std::string& name) const {
  const std::string text = Text(name);
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') Fail(name + "= takes a number, not " + text);
  return value;
}

int64_t Arguments::Number(const std::string& name, int64_t otherwise) const {
  return values_.count(name) > 0 ? Number(name) : otherwise;
}

Redistribution Arguments::What(int ranks) const {
  Redistribution what = {Text("kind"), Number("rows"), Number("columns"), Number("element"), ranks};
  const std::string problem = Problem(what);
  if (!problem.empty()) Fail(problem);
  return what;
}

int Measure(const Arguments& arguments, const std::vector<Memory*>& memories, bool prints,
            Peer* peer) {
  const int64_t warmup = arguments.Number("warmup");
  const int64_t iterations = arguments.Number("iters");
  std::vector<double> times_us;
  int64_t most_wrong = 0;  // on any rank, in any round
  for (int64_t i = 0; i < warmup + iterations; ++i) {
    for (Memory* memory : memories) memory->Poison();
    peer->Barrier();
    const int64_t start = NowNs();
    peer->Run();
    const int64_t end = NowNs();
    const int64_t first = peer->Least(start);
    const int64_t last = peer->Most(end);
    if (i >= warmup) times_us.push_back(static_cast<double>(last - first) / 1e3);
    int64_t wrong = 0;
    for (const Memory* memory : memories) wrong += memory->CountWrong();
    most_wrong = std::max(most_wrong, peer->Most(wrong));
  }
  if (prints) Print(times_us, most_wrong);
  return most_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace sluice::peers
