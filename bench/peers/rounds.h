// What the peers' programs have in common: their arguments, and the timing of a redistribution as
// `sluice-bench reshard` times it.
#ifndef SLUICE_BENCH_PEERS_ROUNDS_H_
#define SLUICE_BENCH_PEERS_ROUNDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "peers/redistribution.h"

namespace sluice::peers {

// Arguments are NAME=VALUE.
class Arguments {
 public:
  Arguments(int argc, char** argv);

  // Say what is missing, and exit, if there is no such argument, or it is not a number.
  std::string Text(const std::string& name) const;
  int64_t Number(const std::string& name) const;
  int64_t Number(const std::string& name, int64_t otherwise) const;

  // Of kind=, rows=, columns= and element=. Exits if it cannot be carried out.
  Redistribution What(int ranks) const;

 private:
  std::map<std::string, std::string> values_;
};

// Prints what went wrong, and exits.
[[noreturn]] void Fail(const std::string& what);

// One way to carry it out, on one rank or on all of them.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void Run() = 0;
  // Over all ranks. Defaults are for a peer that is all of them.
  virtual void Barrier() {}
  virtual int64_t Least(int64_t value) { return value; }
  virtual int64_t Most(int64_t value) { return value; }
};

// Runs it warmup= and then iters= times, each from the first rank's start to the last rank's end,
// and checks every element after each; `memories` are those that this process fills. Prints one
// line of JSON if `prints`. Returns the program's exit code.
int Measure(const Arguments& arguments, const std::vector<Memory*>& memories, bool prints,
            Peer* peer);

}  // namespace sluice::peers

#endif  // SLUICE_BENCH_PEERS_ROUNDS_H_
