// One engine of a script, or a comparison gate in its place: carries out its commands in words.
#ifndef SLUICE_TESTS_DEADLOCK_SCRIPT_ENGINE_H_
#define SLUICE_TESTS_DEADLOCK_SCRIPT_ENGINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "deadlock/plain_gate.h"
#include "deadlock/script_words.h"
#include "engine/engine.h"

namespace sluice::deadlock {

class ScriptEngine {
 public:
  // From the words of "engine".
  explicit ScriptEngine(ScriptWords& words);

  std::string Answer(ScriptWords& words);

  // A bucket as the commands so far leave it.
  struct Standing {
    Ticket ticket = 0;
    StageSet stages = 0;
    Stage stage = Stage::kWaiting;
    bool under_way = false;
  };
  const std::map<int64_t, Standing>& buckets() const { return buckets_; }
  // All commands that the gate has; true if there was one.
  bool ObeyAll();
  // The stage under way has been carried out.
  void Finish(int64_t number);

 private:
  bool NextCommand(Command* command);
  void Tell(ScriptWords& words);
  std::string Freeze(ScriptWords& words);
  void Thaw(ScriptWords& words);
  std::string StandingOf(ScriptWords& words);
  std::string Submit(ScriptWords& words);
  std::string Next();
  std::string All();
  std::string Counters();
  std::string Channel(ScriptWords& words);
  // The engine: comparison gates know fewer commands.
  Engine& engine();

  std::optional<Engine> engine_;
  std::optional<PlainGate> plain_;  // in its place
  std::map<int64_t, Standing> buckets_;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_SCRIPT_ENGINE_H_
